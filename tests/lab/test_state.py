from __future__ import annotations

import errno
import subprocess
import sys
from pathlib import Path

import pytest

from ceph_lab.cluster import Lab
from ceph_lab.options import LabOptions
from ceph_lab.places import LabPlaces
from ceph_lab.processes import ProcessId
from ceph_lab.state import STARTING, UP, LabState, lab_names, locked, read_state
from ceph_lab.status import lab_status
from ceph_tuner.core.errors import ClusterNotFound, LabFailed, Locked


def state(phase: str = UP) -> LabState:
    return LabState(
        name="lab",
        options=LabOptions(iops=700),
        phase=phase,
        port=16790,
        fsid="f",
        chroot="/c",
        created=1.5,
        keeper=ProcessId(2**22 + 1, 99),
    )


@pytest.fixture
def places(tmp_path: Path) -> LabPlaces:
    places = LabPlaces("lab", tmp_path)
    places.directory.mkdir()
    return places


def test_a_lab_s_state_survives_its_file(places: LabPlaces) -> None:
    assert read_state(places) is None
    state().write(places)
    assert read_state(places) == state()
    assert [path.name for path in places.directory.iterdir()] == ["lab.json"]


def test_a_capacity_that_is_not_verified_stands_in_the_status(places: LabPlaces) -> None:
    doubt = "the bench gave 600 IOPS, an OSD on such a drive does 900 at least; mClock is told 600"
    state(STARTING).with_changes(doubts={"nvme": doubt}).write(places)
    assert lab_status("lab", places.labs)["capacity_doubts"] == {"nvme": doubt}


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"version": 1, "keeper": null, "options": {"osds": "3"}}'])
def test_a_damaged_file_names_itself_and_the_way_out(places: LabPlaces, text: str) -> None:
    places.state.write_text(text)
    with pytest.raises(LabFailed, match=r"lab.json cannot be read .*ceph-tuner lab down --name lab"):
        read_state(places)
    assert lab_status("lab", places.labs)["phase"] == "damaged"


def test_a_full_disk_keeps_nobody_from_the_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.pwrite", full)
    refused = pytest.raises(Locked, match=r"busy \(process unknown\)")
    with locked(tmp_path / "lock", "busy"), refused, locked(tmp_path / "lock", "busy"):
        pytest.fail("both have it")
    with locked(tmp_path / "lock", "busy"):
        pass


def test_half_a_lab_is_listed_and_not_opened(places: LabPlaces) -> None:
    assert lab_names(places.labs) == ["lab"]
    for written in (None, state(STARTING), state(UP)):
        if written:
            written.write(places)
        with pytest.raises(ClusterNotFound, match="lab lab"):
            Lab.open("lab", places.labs)


def test_a_lab_whose_namespace_is_gone_is_called_crashed(places: LabPlaces) -> None:
    state(UP).write(places)
    assert lab_status("lab", places.labs)["phase"] == "crashed"


def test_an_unknown_lab_is_answered_with_the_known_ones(places: LabPlaces) -> None:
    with pytest.raises(ClusterNotFound, match=r"lab other: found no running lab, .*\(lab\)"):
        Lab.open("other", places.labs)


def test_a_second_holder_is_refused_and_told_who_holds(tmp_path: Path) -> None:
    hold = (
        "import sys, time; from pathlib import Path; from ceph_lab.state import locked\n"
        "with locked(Path(sys.argv[1]), 'busy'): print('held', flush=True); time.sleep(60)"
    )
    path = tmp_path / "lock"
    holder = subprocess.Popen([sys.executable, "-c", hold, path], stdout=subprocess.PIPE)
    with holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        with pytest.raises(Locked, match=rf"busy \(process {holder.pid}\)"), locked(path, "busy"):
            pass
        # killed, it cannot tidy up; the kernel lets go of the lock
        holder.kill()
        holder.wait()
        with locked(path, "busy", wait=5):
            assert path.exists()
    assert not path.exists()
