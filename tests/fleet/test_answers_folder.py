from __future__ import annotations

import errno
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Optional

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from ceph_tuner.core.errors import InputError
from ceph_tuner.core.goals.slo import parse_slo
from ceph_tuner.core.profiles.profile import Profile
from ceph_tuner.fleet import portable_file
from ceph_tuner.fleet.advice import Advice, SearchTask
from ceph_tuner.fleet.answers_folder import GOOD_FOR_S, AnswersFolder
from ceph_tuner.fleet.portable import sealed
from ceph_tuner.recommend import Question, SearchEffort
from ceph_tuner.twin.model import ClientStream, ClusterModel, Device, OsdModel, Pool
from ceph_tuner_profiles import catalogue
from monitors import ManualClock

MODEL = ClusterModel(4, OsdModel(Device(8e4, 1e9)), (Pool("rbd"),), (ClientStream("rbd", rate=1000.0),))
SLO = parse_slo({"name": "wanted", "objectives": ["client.p95_ms <= 5 ms"]})
PARIS = SearchTask("paris", Question(MODEL, SLO), SearchEffort())
OTHER = replace(PARIS, effort=SearchEffort(seed=2))
DOCUMENT = {"cluster": "paris", "recommended": {"better": True}}


def folder(path: Path) -> AnswersFolder:
    return AnswersFolder(path, ["paris", "rome"], ManualClock())


def advice(profile: Optional[Profile]) -> Advice:
    return Advice(DOCUMENT, profile)


@pytest.fixture
def profile() -> Profile:
    return catalogue.load("tuned/lab-recovery")


def test_what_is_kept_is_known_for_the_same_question_alone(tmp_path: Path, profile: Profile) -> None:
    own = folder(tmp_path / "new" / "out")
    assert own.known(PARIS) is None
    own.keep(PARIS, advice(profile))
    again = folder(tmp_path / "new" / "out")
    assert again.known(PARIS) == advice(profile)
    assert again.known(OTHER) is None
    assert again.known(replace(PARIS, name="rome")) is None


def test_the_profile_is_one_that_travels(tmp_path: Path, profile: Profile) -> None:
    own = folder(tmp_path)
    own.keep(PARIS, advice(profile))
    read = portable_file.read(own.profile("paris"))
    assert read.profile == profile
    assert read.origin["cluster"] == "paris"
    # somebody removed it: it comes back from the answer
    own.profile("paris").unlink()
    assert own.known(PARIS) is not None
    assert portable_file.read(own.profile("paris")).profile == profile


def test_a_profile_of_an_older_question_does_not_stay(tmp_path: Path, profile: Profile) -> None:
    own = folder(tmp_path)
    own.keep(PARIS, advice(profile))
    own.keep(OTHER, advice(None))
    assert not own.profile("paris").exists()
    assert own.known(OTHER) == advice(None)


def test_where_the_cluster_was_looked_at_another_load_is_no_other_question_for_a_day(
    tmp_path: Path, profile: Profile
) -> None:
    clock = ManualClock()
    own = AnswersFolder(tmp_path, ["paris"], clock)
    seen = replace(PARIS, seen=True)
    own.keep(seen, advice(profile))
    busier = replace(MODEL, clients=(ClientStream("rbd", rate=1040.0),))
    again = replace(seen, question=replace(PARIS.question, model=busier))
    assert own.known(again) == advice(profile)
    # a file that says something else is another question, and so are other settings or OSDs
    assert own.known(replace(again, seen=False)) is None
    assert own.known(replace(seen, question=replace(PARIS.question, in_force={"osd_max_scrubs": 2}))) is None
    assert own.known(replace(seen, question=replace(PARIS.question, model=replace(MODEL, osds=5)))) is None
    clock.sleep(GOOD_FOR_S + 1)
    assert own.known(again) is None


@pytest.mark.parametrize("text", ['{"mine": 1}', '{"mine', "\udcff"])
@pytest.mark.parametrize("name", ["paris.json", "paris.yaml"])
def test_files_of_somebody_else_are_left_alone(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text, errors="surrogateescape")
    with pytest.raises(InputError, match=f"{name}: found a file of somebody else, expected another --output"):
        folder(tmp_path)
    assert (tmp_path / name).read_text(errors="surrogateescape") == text


def exported(path: Path, profile: Profile, cluster: str = "paris", key: Optional[Ed25519PrivateKey] = None) -> None:
    """As `fleet export` writes it."""
    portable_file.write(
        path, sealed(profile, {"cluster": cluster, "exported": "2026-11-21T19:00:00Z"}, key), force=True
    )


@pytest.mark.parametrize("kept", [None, "tuned/lab-recovery"])
@pytest.mark.parametrize("there", ["an export", "signed", "of another cluster", "no profile"])
def test_a_profile_that_no_answer_of_ours_speaks_of_stays(tmp_path: Path, kept: Optional[str], there: str) -> None:
    own = folder(tmp_path)
    own.keep(PARIS, advice(None if kept is None else catalogue.load(kept)))
    path = own.profile("paris")
    recovery, scrub = (catalogue.load(f"tuned/lab-{name}") for name in ("recovery", "scrub"))
    if there == "an export":
        exported(path, scrub)
    elif there == "signed":
        exported(path, recovery, key=Ed25519PrivateKey.generate())
    elif there == "of another cluster":
        exported(path, recovery, "milan")
    else:
        path.write_text("mine: 1\n")
    before = path.read_bytes()
    # it came while the searches ran, or the folder is taken up again
    known = own.known(PARIS)
    assert known is not None
    for answer in (advice(scrub), advice(None)):
        with pytest.raises(InputError, match=r"paris\.yaml: found a file of somebody else"):
            own.keep(OTHER, answer)
    with pytest.raises(InputError, match=r"paris\.yaml: found a file of somebody else, expected another --output"):
        folder(tmp_path)
    assert path.read_bytes() == before
    assert own.known(PARIS) == known


def test_a_profile_of_its_own_gives_way_to_the_next_answer(tmp_path: Path, profile: Profile) -> None:
    folder(tmp_path).keep(PARIS, advice(profile))
    scrub = catalogue.load("tuned/lab-scrub")
    folder(tmp_path).keep(OTHER, advice(scrub))
    assert portable_file.read(folder(tmp_path).profile("paris")).profile == scrub


def test_a_changed_answer_is_searched_again(tmp_path: Path, profile: Profile) -> None:
    own = folder(tmp_path)
    own.keep(PARIS, advice(profile))
    document = json.loads(own.answer("paris").read_text())
    document["fleet"]["profile"]["settings"]["osd_max_backfills"] = "many"
    own.answer("paris").write_text(json.dumps(document))
    assert own.known(PARIS) is None


@pytest.mark.parametrize("stopped_at", ["paris.json", "paris.yaml"])
def test_where_it_was_stopped_between_the_two_files_it_goes_on(
    tmp_path: Path, profile: Profile, stopped_at: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = folder(tmp_path)
    own.keep(OTHER, advice(catalogue.load("tuned/lab-scrub")))

    def full(source: str, target: Path) -> None:
        if Path(target).name == stopped_at:
            raise OSError(errno.ENOSPC, "No space left on device")
        os.rename(source, target)

    monkeypatch.setattr(os, "replace", full)
    monkeypatch.setattr(os, "link", full)
    with pytest.raises(InputError, match="No space left on device"):
        own.keep(PARIS, advice(profile))
    again = folder(tmp_path)
    # on a disk that is still full, what is known stays known
    expected = advice(profile) if stopped_at == "paris.yaml" else None
    assert again.known(PARIS) == expected
    monkeypatch.undo()
    assert again.known(PARIS) == expected
    if expected is None:
        again.keep(PARIS, advice(profile))
    assert portable_file.read(own.profile("paris")).profile == profile


@pytest.mark.parametrize("length", [0, 5, 40, -20])
def test_a_part_of_an_answer_is_its_own(tmp_path: Path, profile: Profile, length: int) -> None:
    own = folder(tmp_path)
    own.keep(PARIS, advice(profile))
    own.answer("paris").write_bytes(own.answer("paris").read_bytes()[:length])
    # it no longer says that the profile is its own
    with pytest.raises(InputError, match=r"paris\.yaml: found a file of somebody else"):
        folder(tmp_path)
    own.profile("paris").unlink()
    again = folder(tmp_path)
    assert again.known(PARIS) is None
    again.keep(PARIS, advice(profile))
    assert again.known(PARIS) == advice(profile)


def test_which_pools_are_told_of_as_one_is_no_other_question(tmp_path: Path, profile: Profile) -> None:
    own = folder(tmp_path)
    pools = tuple(Pool(f"p{number}", 8) for number in range(6))
    one = replace(PARIS, seen=True, question=replace(PARIS.question, model=replace(MODEL, clients=(), pools=pools)))

    def told(*pools: Pool) -> SearchTask:
        return replace(one, question=replace(one.question, model=replace(one.question.model, pools=pools)))

    own.keep(one, advice(profile))
    assert own.known(told(*pools[:1], Pool("p1 and 4 quiet ones", 40))) == advice(profile)
    assert own.known(told(*pools[:1], Pool("p1 and 4 quiet ones", 48))) is None
    assert own.known(told(*pools[:1], Pool("p1 and 4 quiet ones", 40, size=2))) is None


def test_a_place_that_cannot_be_is_refused_before_anything_is_searched(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="expected a directory"):
        folder(tmp_path / "file")
