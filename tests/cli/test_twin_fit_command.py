from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, List

import pytest

from ceph_tuner.core.knobs.releases import TENTACLE
from ceph_tuner.twin.forecast import metrics_of
from ceph_tuner.twin.model import MIB
from ceph_tuner.twin.observations import SimulatedRun, simulated
from ceph_tuner_cli import main
from running_program import Run

# what all of them look at is fitted once, in one process
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("fit")]

LAB = {"release": "tentacle", "osds": 3, "iops": 1075, "bandwidth": 60 * MIB, "size": 3}
HARDWARE = {"capacity_iops": 811.7, "bandwidth_bytes_s": 60.0 * MIB, "shards": 1, "device_class": "ssd"}


@pytest.fixture(scope="module")
def windows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Windows of a lab that the twin plays, with commits that take longer than described."""
    from ceph_lab.options import LabOptions
    from ceph_lab.twin_model import lab_model
    from ceph_tuner.core.knobs.cost import Hardware
    from ceph_tuner.twin.parameters import with_values

    path = tmp_path_factory.mktemp("windows") / "windows.json"
    hardware = Hardware(811.7, 60.0 * MIB, 1, "ssd")
    rows: List[Dict[str, Any]] = []
    for number, (label, profile) in enumerate([("in-force", {}), ("fast", TENTACLE.profiles["high_recovery_ops"])]):
        model = lab_model(LabOptions.from_dict(LAB), hardware, "client", TENTACLE, (20, 2, 4))
        model = with_values(model, {"osd.kv_latency_s": 2e-3})
        metrics = metrics_of(model)
        settings = profile or TENTACLE.profiles["balanced"]
        values = simulated(SimulatedRun(model, dict(settings), 10.0, 2.0, 70 + number, metrics))
        measures = {name: [float(value), 0.03 * float(value), 5] for name, value in zip(metrics, values)}
        rows.append({"mix": "client", "label": label, "settings": dict(profile), "measures": measures})
    document = {
        "ceph": "20.2.4", "lab": LAB, "hardware": HARDWARE, "in_force": TENTACLE.profiles["balanced"],
        "window_s": 10.0, "settle_s": 2.0, "windows": rows,
    }  # fmt: skip
    path.write_text(json.dumps(document))
    return path


@pytest.fixture(scope="module")
def fit(windows: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("fit") / "fit.json"
    words = ["twin", "fit", "--windows", str(windows), "--save", str(path), "--effort", "2", "--processes", "1"]
    argv, sys.argv = sys.argv, ["ceph-tuner", *words]
    try:
        with pytest.raises(SystemExit) as ended:
            main.main()
    finally:
        sys.argv = argv
    assert not ended.value.code, "a twin explains what it made itself"
    return path


def test_a_fit_is_saved_with_its_evidence(fit: Path) -> None:
    document = json.loads(fit.read_text())
    assert document["what"] == "twin fit"
    assert document["ceph"] == "20.2.4"
    assert document["windows"] == 2
    assert {entry["label"] for entry in document["evidence"]} == {"in-force", "fast"}
    names = [entry["name"] for entry in document["parameters"]]
    assert "osd.kv_latency_s" in names
    # what the lab states is not fitted
    assert "osd.device.iops" not in names


def test_a_fit_predicts_with_intervals(fit: Path, run: Run) -> None:
    code, out, _ = run(
        "twin", "predict", "--fit", fit, "--settings", "balanced", "-s", "osd_max_scrubs=1", "--draws", 8,
        "--window", 10, "--processes", 1, "--format", "json",
    )  # fmt: skip
    document = json.loads(out)
    assert code == 0
    assert document["settings"]["osd_max_scrubs"] == 1
    assert document["settings"]["osd_mclock_scheduler_client_res"] == 0.5
    for metric, entry in document["metrics"].items():
        assert entry["low"] <= entry["value"] <= entry["high"], metric
        assert not entry["guessed"], metric
    assert document["metrics"]["client.iops"]["low"] < 250 < document["metrics"]["client.iops"]["high"]


def test_the_tables_are_for_people(fit: Path, run: Run) -> None:
    code, out, err = run("twin", "predict", "--fit", fit, "-s", "high_client_ops", "--draws", 4)
    assert code == 0
    assert "90% interval" in out
    assert "client.p99_ms" in out
    assert "guess" not in err


def test_a_described_cluster_is_predicted_without_a_fit(run: Run) -> None:
    described = Path(__file__).resolve().parents[2] / "examples" / "cluster-nvme-node.yaml"
    code, out, err = run(
        "twin", "predict", "--cluster-file", described, "-s", "balanced", "--draws", 4, "--window", 1,
        "--settle", 0.5, "--processes", 1, "--format", "json",
    )  # fmt: skip
    assert code == 0, err
    assert all(entry["guessed"] for entry in json.loads(out)["metrics"].values())


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        (["fit"], "twin fit: found neither --windows nor --cluster, expected one of them"),
        (["fit", "--windows", "a", "--cluster", "b"], "found --windows and --cluster, expected one of them"),
        (["fit", "--windows", "/none.json"], "/none.json: found no such file"),
        (["fit", "--windows", "{windows}", "--only", "fit-9"], "--only: found 'fit-9', expected one of fast, in-force"),
        (["fit", "--windows", "{windows}", "--known", "osd.magic"], "--known: found 'osd.magic'"),
        (["fit", "--windows", "{windows}", "--save", "{windows}"], "a file of that name, expected another name"),
        (["fit", "--windows", "{windows}", "--save", "/none/fit.json"], "no directory /none"),
        (["predict", "-s", "balanced"], "found neither --fit nor --cluster-file"),
        (["predict", "--fit", "{windows}", "-s", "balanced"], "error: "),
        (["predict", "--fit", "{fit}", "-s", "balenced"], "--settings: found 'balenced', expected a file, or one of"),
        (["predict", "--fit", "{fit}", "-s", "osd_max_scrub=1"], "osd_max_scrub"),
        (["predict", "--fit", "{fit}", "-s", "osd_max_scrubs=many"], "--settings osd_max_scrubs: found 'many'"),
        (["predict", "--fit", "{fit}", "-s", "osd_scrub_cost=1"], "a knob that does nothing on"),
        (["predict", "--fit", "{fit}", "-s", "balanced", "-s", "high_client_ops"], "expected one profile, and"),
        (
            ["predict", "--fit", "{fit}", "-s", "balanced", "--scenario", "mixed"],
            "found 'mixed', expected one of client",
        ),
    ],
)
def test_what_cannot_be_used_is_refused_with_its_place(
    words: List[str], fault: str, windows: Path, fit: Path, run: Run
) -> None:
    code, out, err = run("twin", *(word.format(windows=windows, fit=fit) for word in words))
    assert code == 2
    assert out == ""
    assert fault in err
    assert len(err.strip().splitlines()) == 1


@pytest.mark.parametrize("processes", ["1", "2"])
def test_ctrl_c_ends_a_fit_at_once_and_leaves_nothing(windows: Path, tmp_path: Path, processes: str) -> None:
    target = tmp_path / "fit.json"
    command = [
        sys.executable, "-m", "ceph_tuner_cli", "twin", "fit", "--windows", str(windows), "--save", str(target),
        "--effort", "64", "--processes", processes,
    ]  # fmt: skip
    command[1:3] = ["-c", "from ceph_tuner_cli.main import main; main()"]
    child = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # progress is only shown to a terminal
        env={**os.environ, "FORCE_COLOR": "1", "TERM": "xterm", "COLUMNS": "120"},
    )
    try:
        assert child.stderr is not None
        shown = b""
        while b"looking around" not in shown:
            more = os.read(child.stderr.fileno(), 4096)
            assert more, shown
            shown += more
        # as a terminal does: every process of the group gets it
        os.killpg(child.pid, signal.SIGINT)
        out, err = child.communicate(timeout=60)
    finally:
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
    assert child.returncode == 130, err
    assert "Traceback" not in err
    assert out == ""
    assert not target.exists()
