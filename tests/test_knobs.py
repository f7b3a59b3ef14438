from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ceph_tuner.core.errors import InputError
from ceph_tuner.core.knobs.catalogue import KNOBS, MCLOCK_NINE, NEVER_SET, knob, searchable, unmet_needs, working
from ceph_tuner.core.knobs.knob import Knob, KnobEffect, Since
from ceph_tuner.core.knobs.releases import QUINCY, QUINCY_EARLY, REEF, RELEASES, SQUID, TENTACLE, Release, Value

OVERRIDE = "osd_mclock_override_recovery_settings"

every_knob = pytest.mark.parametrize("entry", KNOBS.values(), ids=list(KNOBS))
every_release = pytest.mark.parametrize("release", RELEASES.values(), ids=list(RELEASES))


def values_of(entry: Knob) -> st.SearchStrategy[Value]:
    if entry.kind == "bool":
        return st.booleans()
    if entry.choices:
        return st.sampled_from(entry.choices)
    if entry.kind in ("int", "size"):
        return st.integers(int(entry.low), int(entry.high))
    return st.floats(entry.low, entry.high, allow_nan=False)


@given(st.data())
def test_what_is_written_reads_back_the_same(data: st.DataObject) -> None:
    entry = data.draw(st.sampled_from(list(KNOBS.values())))
    kept = entry.check(data.draw(values_of(entry)))
    assert entry.parse(entry.format(kept)) == kept
    assert entry.format(entry.parse(entry.format(kept))) == entry.format(kept)


@given(st.data())
def test_a_value_beyond_the_range_is_refused(data: st.DataObject) -> None:
    entry = data.draw(st.sampled_from([k for k in KNOBS.values() if not k.choices and k.kind != "bool"]))
    beyond = data.draw(st.one_of(st.integers(max_value=int(entry.low) - 1), st.integers(int(entry.high) + 1)))
    if beyond != 0 or not entry.zero_means:
        with pytest.raises(InputError, match=entry.name):
            entry.check(float(beyond) if entry.kind in ("float", "fraction") else beyond)


def refuses(entry: Knob, bad: object) -> bool:
    try:
        entry.check(bad)
    except InputError:
        return True
    return False


@every_knob
def test_nothing_that_is_no_value_passes(entry: Knob) -> None:
    wrong = (math.nan, math.inf, -math.inf, None, "", "no", [], {}, 3 + 4j)
    assert [bad for bad in wrong if not refuses(entry, bad)] == []


@every_knob
def test_a_boolean_is_no_number(entry: Knob) -> None:
    if entry.kind != "bool":
        with pytest.raises(InputError):
            entry.check(True)


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        # each seen in `ceph config dump` of 18.2.7 and 20.2.4 after `config set`
        ("osd_mclock_scheduler_client_res", 0.5, "0.500000"),
        ("osd_mclock_scheduler_client_lim", 0.0, "0.000000"),
        ("osd_mclock_scheduler_background_recovery_res", 0.123456789, "0.123457"),
        ("osd_mclock_scheduler_client_wgt", 7, "7"),
        ("osd_scrub_load_threshold", 12.5, "12.500000"),
        ("osd_deep_scrub_interval", 604800, "604800.000000"),
        ("osd_mclock_max_capacity_iops_ssd", 934.87654321, "934.876543"),
        ("osd_mclock_max_sequential_bandwidth_ssd", 62914560, "62914560"),
        (OVERRIDE, True, "true"),
        ("osd_op_queue", "wpq", "wpq"),
    ],
)
def test_values_are_written_as_the_monitors_write_them(name: str, value: Value, text: str) -> None:
    assert knob(name).format(value) == text


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("bluestore_throttle_bytes", "256K", 262144),
        ("bluestore_throttle_bytes", "256Ki", 262144),
        ("bluestore_throttle_bytes", "1MB", 1048576),
        ("osd_scrub_event_cost", " 8192 ", 8192),
        (OVERRIDE, "TRUE", True),
        (OVERRIDE, "0", False),
        ("osd_mclock_scheduler_client_res", ".3", 0.3),
        ("osd_mclock_scheduler_client_res", "1e-7", 0.0),
    ],
)
def test_texts_are_read_as_the_monitors_read_them(name: str, text: str, value: Value) -> None:
    assert knob(name).parse(text) == value


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("bluestore_throttle_bytes", "64k"),
        ("bluestore_throttle_bytes", "1.5M"),
        ("bluestore_throttle_bytes", "i"),
        ("bluestore_throttle_bytes", "-5"),
        ("osd_max_scrubs", "2.5"),
        ("osd_max_scrubs", "99"),
        ("osd_max_scrubs", "0"),
        (OVERRIDE, "yes"),
        ("osd_mclock_scheduler_client_wgt", "0"),
        ("osd_mclock_scheduler_client_lim", "nan"),
        ("osd_mclock_profile", "fast"),
        ("osd_pg_max_concurrent_snap_trims", "0"),
    ],
)
def test_a_text_that_no_cluster_should_get_is_refused(name: str, text: str) -> None:
    with pytest.raises(InputError, match=name):
        knob(name).parse(text)


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(InputError, match="osd_max_scrubs"):
        knob("osd_max_scrub")
    with pytest.raises(InputError, match="ceph-tuner knobs"):
        knob("zzz")


@pytest.mark.parametrize(
    ("name", "works", "not_works"),
    [
        ("osd_scrub_cost", ["quincy-early"], ["quincy", "reef", "squid", "tentacle-early", "tentacle"]),
        ("osd_scrub_event_cost", ["quincy", "reef", "squid", "tentacle"], ["quincy-early"]),
        ("osd_snap_trim_cost", ["quincy-early", "quincy"], ["reef", "squid", "tentacle"]),
        ("osd_recovery_sleep", [], list(RELEASES)),
        ("osd_recovery_sleep_degraded_hdd", [], list(RELEASES)),
        ("osd_deep_scrub_interval_cv", ["tentacle-early", "tentacle"], ["quincy-early", "quincy", "reef", "squid"]),
        ("osd_max_scrubs", list(RELEASES), []),
    ],
)
def test_a_knob_works_where_ceph_reads_it(name: str, works: list[str], not_works: list[str]) -> None:
    assert all(knob(name).effective(RELEASES[release]).works for release in works)
    assert not any(knob(name).effective(RELEASES[release]).works for release in not_works)


@every_release
def test_a_knob_that_does_nothing_names_working_ones_that_do_its_job(release: Release) -> None:
    for entry in KNOBS.values():
        effect = entry.effective(release)
        assert effect.because, entry.name
        if not effect.works and entry.exists(release):
            # what needs to be opened first is no help in place of another
            others = [KNOBS[name] for name in effect.instead]
            assert all(other.effective(release).works or not other.exists(release) for other in others), entry.name
            assert any(other.effective(release).works for other in others), entry.name


@every_release
def test_a_default_is_one_that_the_tuner_accepts_where_the_knob_works(release: Release) -> None:
    acting = [entry for entry in KNOBS.values() if entry.effective(release).works]
    defaults = {entry.name: entry.default(release) for entry in acting if entry.default(release) is not None}
    assert defaults
    assert {name: KNOBS[name].check(default, release) for name, default in defaults.items()} == defaults


@every_release
def test_the_search_moves_only_what_acts_at_once_and_works(release: Release) -> None:
    found = searchable(release)
    assert set(MCLOCK_NINE) <= {entry.name for entry in found}
    for entry in found:
        assert entry.change == "live"
        assert entry.scope == "osd"
        assert entry.effective(release).works
        low, high = entry.search_bounds
        assert entry.low <= low < high <= entry.high
    assert "pg_num" not in {entry.name for entry in found}


def test_recovery_limits_are_searched_only_once_they_are_opened() -> None:
    assert "osd_max_backfills" not in [entry.name for entry in searchable(TENTACLE)]
    assert "osd_max_backfills" in [entry.name for entry in searchable(TENTACLE, {OVERRIDE: True})]
    assert unmet_needs(knob("osd_max_backfills"), REEF, {}) == {OVERRIDE: True}


def test_searched_chunks_stay_above_the_smallest_chunk() -> None:
    for kind in ("osd_scrub_chunk", "osd_shallow_scrub_chunk"):
        assert knob(f"{kind}_max").search_bounds[0] >= (knob(f"{kind}_min").default(TENTACLE) or 0)


def test_defaults_follow_the_point_release() -> None:
    assert knob("osd_scrub_chunk_max").default(REEF, (18, 2, 4)) == 25
    assert knob("osd_scrub_chunk_max").default(REEF) == 15
    assert knob("osd_scrub_chunk_max").default(SQUID, (19, 2, 0)) == 25
    assert knob("osd_max_scrubs").default(REEF, (18, 2, 0)) == 1
    assert knob("osd_snap_trim_cost").effective(REEF, (18, 2, 2)).works
    assert not knob("osd_snap_trim_cost").effective(REEF, (18, 2, 4)).works


def test_sleeps_of_degraded_pgs_came_with_point_releases() -> None:
    entry = knob("osd_recovery_sleep_degraded_hdd")
    assert (entry.default(REEF, (18, 2, 7)), entry.default(REEF, (18, 2, 8))) == (None, 0.1)
    assert (entry.default(SQUID, (19, 2, 2)), entry.default(SQUID, (19, 2, 3))) == (None, 0.1)
    assert entry.default(TENTACLE, (20, 2, 4)) == 0.1


@every_knob
def test_what_mclock_ignores_says_what_it_does_under_wpq(entry: Knob) -> None:
    ignored = any(since.default is not None and not since.effect.works for since in entry.history)
    assert entry.under_wpq or not (ignored or entry.work in NEVER_SET)
    assert not entry.under_wpq.endswith(".")


@every_knob
def test_what_the_operator_alone_sets_is_never_searched(entry: Knob) -> None:
    assert not (entry.searched and (entry.work in NEVER_SET or entry.scope != "osd"))


def test_reservations_are_iops_up_to_17_2_6_and_fractions_since() -> None:
    entry = knob("osd_mclock_scheduler_client_res")
    assert entry.check(1344, QUINCY_EARLY) == 1344
    assert entry.format_for(1344, QUINCY_EARLY) == "1344"
    with pytest.raises(InputError, match="whole number"):
        entry.check(0.5, QUINCY_EARLY)
    with pytest.raises(InputError, match="0 to 1"):
        entry.check(1344, QUINCY)


def test_a_knob_is_checked_when_it_is_made() -> None:
    history = (Since((17, 2, 0), 1, KnobEffect(True, "")),)
    with pytest.raises(ValueError, match="kind"):
        Knob("x", "", "number", "", 0, 1, history)
    with pytest.raises(ValueError, match="above"):
        Knob("x", "", "int", "", 2, 1, history)
    with pytest.raises(ValueError, match="oldest first"):
        Knob("x", "", "int", "", 0, 1, (*history, *history))


@every_release
def test_most_knobs_work_somewhere(release: Release) -> None:
    assert len(working(release)) > len(KNOBS) / 2
