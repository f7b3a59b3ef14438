from __future__ import annotations

from typing import Any, Dict

import pytest

from ceph_tuner.controller.boosts import arguments_of, run_from
from ceph_tuner.controller.kinds import BOOST, RECORD, SLO, ResourceKind
from ceph_tuner.controller.resource import VALID, Report, Resource, StatusCondition, record_part, status_of
from ceph_tuner.core.errors import InputError, Malformed

NOW, LATER = "2026-01-01T00:00:00Z", "2026-01-01T00:05:00Z"


def document(spec: Any, **metadata: Any) -> Dict[str, Any]:
    given = {"namespace": "rook-ceph", "name": "main", "uid": "u", "resourceVersion": "7", "generation": 3, **metadata}
    return {"metadata": given, "spec": spec}


def resource(spec: Any, kind: ResourceKind = SLO, **metadata: Any) -> Resource:
    return Resource.from_document(kind, document(spec, **metadata))


def test_a_condition_keeps_the_time_of_its_last_change() -> None:
    first = status_of(resource({}), Report(VALID, StatusCondition(False, "Waiting", "not yet")), NOW)
    assert first["observedGeneration"] == 3
    assert {each["lastTransitionTime"] for each in first["conditions"]} == {NOW}
    again = Resource.from_document(SLO, {**document({}), "status": first})
    second = status_of(again, Report(VALID, StatusCondition(True, "Carried", "there")), LATER)
    assert [each["lastTransitionTime"] for each in second["conditions"]] == [NOW, LATER]
    third = status_of(again, Report(VALID, StatusCondition(False, "Waiting", "not yet")), LATER)
    assert third == first


def test_a_message_is_one_printable_line_of_bounded_length() -> None:
    report = Report.refused("Invalid", f"a\x1b[31m\nb {'x' * 5000}")
    for each in status_of(resource({}), report, NOW)["conditions"]:
        assert each["message"].isprintable()
        assert len(each["message"]) <= 1000


@pytest.mark.parametrize("text", ["no json", "[]", '"x"', "[" * 90 + "]" * 90])
def test_a_record_that_cannot_be_read_is_refused_where_it_is_needed(text: str) -> None:
    read = resource({}, annotations={RECORD: text})
    for part in ("holds", "boost"):
        with pytest.raises(Malformed, match="stays there"):
            record_part(read.record, part)


def test_without_a_record_nothing_is_noted() -> None:
    assert dict(record_part(resource({}).record, "holds")) == {}
    assert run_from(resource({}).record) is None


def test_an_unknown_key_is_refused_by_its_place() -> None:
    with pytest.raises(InputError, match=r"CephSLO rook-ceph/main: spec\.minimize: found unknown key 'minimize'"):
        assert resource({"objectives": ["client.p95_ms <= 1 ms"], "minimize": "x"}).document


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"kind": "recovery", "atMost": "soon"}, r"spec\.atMost: found 'soon'"),
        ({"kind": "recovery", "atMost": "30d"}, "1min to 7d"),
        ({"kind": "recovery", "keep": ["client.p95_ms >= 1"]}, r"spec\.keep\.0"),
        ({"kind": "recovery", "keep": ["client.p95_ms<=1"] * 11}, "at most 10"),
        ({"kind": "client"}, "one of recovery"),
        ({"kind": "recovery", "until": "clean"}, "unknown key 'until'"),
    ],
)
def test_a_boost_that_makes_no_sense_is_refused(spec: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        arguments_of(resource(spec, BOOST))


def test_a_boost_is_told_in_the_order_of_the_command() -> None:
    spec = {"kind": "scrub", "keep": ["client.p95_ms<=20", "client.iops>=5"], "target": "osd/class:ssd"}
    assert list(arguments_of(resource(spec, BOOST)).items()) == [
        ("until", "clean"),
        ("at_most", "21600s"),
        ("who", "osd/class:ssd"),
        ("keep", "client.p95_ms<=20;client.iops>=5"),
    ]
