"""Whatever the product itself writes is shown as it is; what it never writes is refused (`test_answers.py`)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ceph_tuner.core.changes.step import Step, typed
from ceph_tuner.core.errors import InputError
from ceph_tuner.core.knobs.catalogue import KNOBS, PROFILE
from ceph_tuner.core.knobs.releases import QUINCY_EARLY, RELEASES, TENTACLE, Release
from ceph_tuner.core.knobs.settings import format_settings
from ceph_tuner.recommend.rebuild import MOVES_DATA, RESTART, changes
from ceph_tuner.report.commands import rewritten
from ceph_tuner.twin.model import ClusterModel, Device, OsdModel, Pool

TARGETS = ["osd", "osd.3", "osd/class:ssd", "osd/host:node-1", "osd/rack:r1"]
NAMES = [name for name, knob in KNOBS.items() if knob.scope not in ("pool", "mgr")]


@pytest.mark.parametrize("release", RELEASES.values(), ids=str)
@pytest.mark.parametrize("target", TARGETS)
def test_steps_of_every_knob_are_shown_as_they_are(release: Release, target: str) -> None:
    for name in NAMES:
        default = KNOBS[name].default(release)
        texts = [] if default is None else [KNOBS[name].format_for(default, release)]
        for text in (*texts, *KNOBS[name].choices, None):
            command = Step(target, name, None, text).command
            assert rewritten(command, "x") == command


def test_the_nine_of_every_built_in_profile_are_shown_as_they_are() -> None:
    for release in RELEASES.values():
        for profile in release.profiles.values():
            for name, text in format_settings({**profile, PROFILE: "custom"}, release).items():
                command = Step("osd", name, None, text).command
                assert rewritten(command, "x") == command


def test_a_wait_between_commands_is_shown_as_it_is() -> None:
    *_, wait, last = typed([Step("osd", PROFILE, "custom", None), Step("osd", PROFILE, None, "custom", settled=True)])
    assert rewritten(wait, "x") == wait
    assert rewritten(last, "x") == last


@pytest.mark.parametrize("release", [QUINCY_EARLY, TENTACLE], ids=str)
@pytest.mark.parametrize("pool", ["rbd", "my pool", ".mgr"])
def test_plans_beyond_live_knobs_are_shown_as_they_are(release: Release, pool: str) -> None:
    drive = Device(2000.0, 100e6)
    model = ClusterModel(4, OsdModel(drive), (Pool(pool, 32, 3),), release=release)
    found = [change for kind in (RESTART, MOVES_DATA) for change in changes(model, kind)]
    assert len(found) > 2
    for change in found:
        settings = release.profiles["balanced"]
        for step in (*change.steps(settings), *change.undo(settings, model)):
            assert rewritten(step.command, "x") == step.command


WORDS = st.sampled_from(["ceph", "config", "set", "osd", "osd_max_scrubs", "1", "--x", ";"])


@given(st.text() | st.lists(WORDS).map(" ".join))
def test_nothing_else_comes_through(command: str) -> None:
    try:
        found = rewritten(command, "x")
    except InputError:
        return
    assert found == "ceph config set osd osd_max_scrubs 1"


@pytest.mark.parametrize(
    "words",
    [
        "ceph-tuner pgs step rbd 128 --cluster ceph --pause-autoscaler --yes",
        "ceph-tuner pgs step rbd 128 --cluster ceph",
        "ceph-tuner pgs step --yes 128 --cluster ceph --pause-autoscaler",
        "ceph-tuner pgs step rbd 128 --cluster --yes --pause-autoscaler",
        "ceph-tuner pgs step rbd many --cluster ceph --pause-autoscaler",
        "ceph-tuner drain rbd 128 --cluster ceph --pause-autoscaler",
    ],
)
def test_a_step_of_pgs_that_would_begin_at_once_or_is_another_command_is_refused(words: str) -> None:
    with pytest.raises(InputError):
        rewritten(words, "x")
