"""What the campaign of hostile input counts and finds: by surfaces that are made up."""

from __future__ import annotations

import ast
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Dict, List

import pytest

sys.path.append(str(Path(__file__).resolve().parent / "fuzz"))

import campaign


def turned(surface: Any, turns: int = 1) -> campaign.Tally:
    tally = campaign.Tally()
    for number in range(turns):
        campaign.run_one(surface, "texts", 7, number, tally)
    return tally


def test_inputs_are_those_that_a_surface_says_and_each_turn_has_its_own_randomness() -> None:
    drawn: List[float] = []
    tally = turned(lambda randomness: drawn.append(randomness.random()) or 8, 5)
    assert (tally.inputs, tally.findings, len(set(drawn))) == (40, [], 5)
    again: List[float] = []
    turned(lambda randomness: again.append(randomness.random()) or 8, 5)
    assert again == drawn


def test_every_surface_has_its_turns_and_says_what_it_is() -> None:
    tree = ast.parse((Path(__file__).resolve().parent / "fuzz" / "surfaces.py").read_text(encoding="utf-8"))
    (table,) = [
        node.value for node in tree.body if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "SURFACES"
    ]
    assert isinstance(table, ast.Dict)
    names = {ast.literal_eval(key) for key in table.keys if key is not None}
    assert set(campaign.SHARES) == names == set(campaign.MEANINGS)


def raising(error: BaseException) -> Any:
    def surface(_: Any) -> int:
        raise error

    return surface


@pytest.mark.parametrize(
    ("surface", "kind"),
    [
        (raising(KeyError("summary")), campaign.TRACEBACK),
        (raising(AssertionError(campaign.UNASKED)), campaign.WRITE),
        (lambda _: time.sleep(9) or 1, campaign.HANG),
        (lambda _: subprocess.run([sys.executable, "-c", "import time; time.sleep(9)"]) and 1, campaign.HANG),
    ],
)
def test_each_finding_has_its_kind_and_how_to_make_it_again(
    surface: Any, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(campaign, "HANG_S", 0.3)
    began = time.monotonic()
    (finding,) = turned(surface).findings
    assert (finding.kind, finding.again) == (kind, "--seed 7 --only texts:0")
    assert time.monotonic() - began < 8


def test_time_without_a_processor_is_none_of_an_input_s(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(campaign, "HANG_S", 0.3)
    began = time.monotonic()
    # as if other programs had the processors for all but a tenth of the time
    monkeypatch.setattr(campaign, "_run_delay_s", lambda _: 0.9 * (time.monotonic() - began))
    tally = turned(lambda _: time.sleep(1.0) or 1)
    assert tally.findings == []
    assert tally.slowest_s < campaign.HANG_S


def test_what_a_child_waited_for_before_an_input_excuses_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(campaign, "HANG_S", 0.3)
    monkeypatch.setattr(campaign, "_children", lambda: ["1"])
    monkeypatch.setattr(campaign, "_run_delay_s", lambda pid: 60.0 if pid == "1" else 0.0)
    (finding,) = turned(lambda _: time.sleep(9) or 1).findings
    assert finding.kind == campaign.HANG


def line(seed: int, inputs: int, *kinds: str, memory_mib: int = 300) -> Dict[str, Any]:
    surface = {
        "inputs": inputs,
        "seconds": 10.0,
        "slowest_s": 0.5 * seed,
        "findings": [{"kind": kind, "again": "x"} for kind in kinds],
    }
    return {"seed": seed, "memory_mib": memory_mib, "surfaces": {"store": surface, "texts": surface}}


def test_runs_add_up() -> None:
    lines = [line(1, 60_000), line(2, 50_000, campaign.HANG, campaign.WRITE, memory_mib=420)]
    told = campaign.table(lines)
    assert "| store | values of the store, under a running plugin | 110 000 | 5500 | 1.00 s | 2 |" in told
    assert told.endswith(
        "220 000 inputs in 0.0 h, seeds 1, 2: 0 tracebacks, 2 writes that were not asked for, 2 inputs over 5 s, "
        "420 MiB of memory at most."
    )
    assert campaign.next_seed(lines) == 3


def test_a_seed_that_a_run_has_had_is_refused(tmp_path: Path) -> None:
    output = tmp_path / "fuzz.jsonl"
    output.write_text('{"seed": 4, "surfaces": {}, "memory_mib": 1}\n')
    command = [sys.executable, campaign.__file__, "--seed", "4", "--output", str(output)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "have had seed 4: their inputs would count twice" in done.stderr
    assert len(output.read_text().splitlines()) == 1
