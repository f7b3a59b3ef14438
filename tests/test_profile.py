from __future__ import annotations

import json
from typing import Any, Dict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ceph_tuner.core.errors import InputError
from ceph_tuner.core.knobs.cost import Hardware
from ceph_tuner.core.knobs.releases import QUINCY_EARLY, REEF, RELEASES, TENTACLE, nine
from ceph_tuner.core.profiles.profile import Profile

GOOD: Dict[str, Any] = {
    "schema": 1,
    "name": "recovery-on-flash",
    "description": "from a lab",
    "release": "tentacle",
    "version": "20.2.4",
    "hardware": {
        "capacity_iops": 934.9,
        "bandwidth_bytes_s": 62914560,
        "shards": 1,
        "device_class": "ssd",
        "osds": 3,
    },
    "workload": "client-recovery",
    "slos": [{"name": "night", "objectives": ["client.p95_ms <= 80 ms"]}],
    "evidence": [{"client.p95_ms": {"mean": 72.5, "count": 3}, "note": None, "repeats": [1, 2]}],
    "settings": {**nine((0.5, 8, 0.0), (0.2, 1, 0.5), (0.05, 1, 0.3)), "osd_max_scrubs": 3},
}


def changed(*keys: Any, to: Any) -> Dict[str, Any]:
    data: Any = json.loads(json.dumps(GOOD))
    inner = data
    for key in keys[:-1]:
        inner = inner[key]
    inner[keys[-1]] = to
    return dict(data)


def without(*keys: Any) -> Dict[str, Any]:
    data: Any = json.loads(json.dumps(GOOD))
    inner = data
    for key in keys[:-1]:
        inner = inner[key]
    del inner[keys[-1]]
    return dict(data)


def test_a_profile_survives_its_plain_form() -> None:
    assert Profile.from_dict(GOOD).to_dict() == GOOD


def test_what_is_optional_may_be_left_out() -> None:
    few = {key: GOOD[key] for key in ("schema", "name", "release", "settings")}
    assert Profile.from_dict(few).to_dict() == few


share = st.tuples(st.floats(0, 0.33), st.integers(1, 1000), st.one_of(st.just(0.0), st.floats(0.34, 1)))


@given(
    st.tuples(share, share, share),
    st.sampled_from(list(RELEASES.values())),
    st.lists(
        st.recursive(
            st.none()
            | st.booleans()
            | st.integers(-(2**53), 2**53)
            | st.floats(allow_nan=False, allow_infinity=False)
            | st.text(),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
            max_leaves=5,
        ),
        max_size=3,
    ),
)
def test_any_sound_profile_survives_its_plain_form_and_json(three: Any, release: Any, evidence: Any) -> None:
    made = Profile.make("any", release, nine(*three), evidence=tuple({"seen": item} for item in evidence))
    again = Profile.from_dict(json.loads(json.dumps(made.to_dict())))
    assert again.to_dict() == made.to_dict()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (None, ": found nothing, expected a mapping"),
        ([], ": found list, expected a mapping"),
        ({5: 1}, "the key 5"),
        (without("schema"), "no key 'schema'"),
        (changed("schema", to=2), "schema: found 2, expected 1"),
        (changed("schema", to=True), "schema: found True"),
        (changed("color", to="red"), "color: found unknown key 'color', expected one of schema, name"),
        (changed("name", to="My profile"), "name: found 'My profile', expected 1 to 64"),
        (changed("name", to="../../etc/passwd"), "name: found"),
        (changed("name", to=5), "name: found 5, expected text"),
        (changed("release", to="pacific"), "release: found 'pacific', expected one of quincy-early"),
        (changed("version", to="18.2.7"), "version: found '18.2.7', expected a version of Tentacle"),
        (changed("version", to="new"), "version: found 'new'"),
        (changed("description", to="x" * 5000), "description: found more than 4096"),
        (changed("hardware", to=[]), "hardware: found list"),
        (changed("hardware", "cpu", to=1), "hardware.cpu: found unknown key"),
        (without("hardware", "shards"), "hardware: found no key 'shards'"),
        (changed("hardware", "shards", to=0), "hardware.shards: found 0"),
        (changed("hardware", "shards", to=1.5), "hardware.shards: found 1.5"),
        (changed("hardware", "capacity_iops", to=0), "hardware.capacity_iops: found 0"),
        (changed("hardware", "capacity_iops", to=float("nan")), "hardware.capacity_iops: found nan"),
        (changed("hardware", "device_class", to="a b"), "hardware.device_class: found 'a b'"),
        (changed("hardware", "osds", to=-1), "hardware.osds: found -1"),
        (changed("slos", to={}), "slos: found dict"),
        (changed("slos", 0, "objectives", 0, to="client.p95 <= 3"), "slos.0.objectives.0: found"),
        (changed("evidence", to=[5]), "evidence.0: found int"),
        (changed("evidence", 0, "note", to=float("inf")), "evidence.0.note: found inf"),
        (changed("settings", to={}), "settings: found no settings"),
        (changed("settings", "osd_max_scrubs", to=99), "settings.osd_max_scrubs: found 99, expected 1 to 10"),
        (changed("settings", "osd_max_scrub", to=3), "settings.osd_max_scrub: found 'osd_max_scrub'"),
        (changed("settings", "osd_scrub_cost", to=4096), "settings.osd_scrub_cost: found a knob that does nothing"),
        (changed("settings", "osd_mclock_profile", to="custom"), "settings.osd_mclock_profile"),
        (changed("settings", "pg_num", to=64), "settings.pg_num: found pg_num, which belongs to a pool"),
        (changed("settings", "target_max_misplaced_ratio", to=0.1), "which belongs to the mgr"),
        (changed("settings", "deep_scrub_interval", to=86400.0), "which belongs to a pool"),
        (
            changed("settings", "osd_mclock_max_capacity_iops_ssd", to=64.0),
            "settings.osd_mclock_max_capacity_iops_ssd: found .* expected it under hardware",
        ),
        (without("settings", "osd_mclock_scheduler_client_wgt"), "8 of the nine"),
        (changed("built_in", to=True), "name: found 'recovery-on-flash', expected one of high_client_ops"),
        (changed("built_in", to="yes"), "built_in: found 'yes'"),
    ],
)
def test_a_fault_is_named_by_its_place(data: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Profile.from_dict(data)


def test_deep_evidence_is_refused() -> None:
    deep: Any = 1
    for _ in range(50):
        deep = [deep]
    with pytest.raises(InputError, match="levels"):
        Profile.from_dict(changed("evidence", 0, "note", to=deep))


def test_endless_evidence_is_refused() -> None:
    with pytest.raises(InputError, match="at most 20000"):
        Profile.from_dict(changed("evidence", 0, "note", to=[0] * 30_000))


def test_a_built_in_profile_has_ceph_s_own_values() -> None:
    made = Profile.make("balanced", TENTACLE, TENTACLE.profiles["balanced"], built_in=True)
    assert made.built_in
    other = {**REEF.profiles["balanced"], "osd_mclock_scheduler_client_wgt": 2}
    with pytest.raises(InputError, match="client_wgt: found 2, expected 1, as in"):
        Profile.make("balanced", REEF, other, built_in=True)


def test_limits_above_the_capacity_belong_to_the_release_that_had_them() -> None:
    early = QUINCY_EARLY.profiles["high_recovery_ops"]
    assert Profile.make("x", QUINCY_EARLY, early).settings == early
    with pytest.raises(InputError, match="0 to 1"):
        Profile.make("x", REEF, early)
    with pytest.raises(InputError, match="up to 3"):
        Profile.make("x", QUINCY_EARLY, {**early, "osd_mclock_scheduler_client_lim": 2688})


def test_making_a_profile_checks_it() -> None:
    with pytest.raises(InputError, match="nonsense"):
        Profile.make("x", REEF, {"nonsense": 3})
    with pytest.raises(ValueError, match="shards"):
        Profile.make("x", REEF, GOOD["settings"], hardware=Hardware(1, 1, 0))


@given(st.data())
def test_no_mutation_of_a_profile_ends_in_anything_but_a_profile_or_an_input_error(data: st.DataObject) -> None:
    keys = data.draw(
        st.sampled_from(
            [
                ("settings", "osd_max_scrubs"),
                ("hardware", "shards"),
                ("slos",),
                ("evidence",),
                ("name",),
                ("version",),
                ("release",),
                ("hardware",),
                ("settings",),
            ]
        )
    )
    odd = data.draw(
        st.one_of(
            st.none(),
            st.booleans(),
            st.integers(),
            st.floats(),
            st.text(max_size=5),
            st.lists(st.integers() | st.none(), max_size=2),
            st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
            st.binary(max_size=2),
            st.dates(),
        )
    )
    try:
        Profile.from_dict(changed(*keys, to=odd))
    except InputError as refusal:
        assert keys[0] in refusal.place  # noqa: PT017 - most values are refused, some are not
