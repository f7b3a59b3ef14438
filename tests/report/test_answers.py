"""What recommend and tune printed, taken apart; and what nobody printed, refused."""

from __future__ import annotations

import copy
import json
from typing import Any, Callable, Dict, List, Tuple

import pytest
from example_answers import LIMIT, OBJECTIVES, TRIMS, recommendation, trials, tuning
from hypothesis import given, settings
from hypothesis import strategies as st

from ceph_tuner.core.errors import InputError
from ceph_tuner.report import Findings, answer_file
from ceph_tuner.report.answers import findings_of


def read(document: Any) -> Findings:
    return findings_of(answer_file.parse(json.dumps(document).encode(), "answer.json"))


def test_a_recommendation_has_what_is_in_force_first_and_one_that_is_chosen() -> None:
    found = read(recommendation())
    assert [option.label for option in found.options if option.in_force] == ["balanced"]
    assert found.options[0].in_force
    assert found.chosen is not None
    assert found.chosen.label == "trial 7"
    assert found.chosen.seen["client.p95_ms"].interval == pytest.approx((3.42, 4.18))
    assert found.after[LIMIT] == 0.4
    assert found.before[LIMIT] == 0
    assert found.commands[0].endswith("osd_mclock_profile custom")
    assert any("predicted by a model" in line for line in found.unknown)


def test_where_nothing_is_better_no_settings_change() -> None:
    answer = recommendation()
    answer["recommended"]["better"] = False
    assert read(answer).after == {}
    assert not read(answer).better


def test_what_is_not_known_follows_the_answer() -> None:
    answer = recommendation(confirmed=False, explanation=None)
    del answer["tried"]
    answer["beyond_live_knobs"] = None
    said = " ".join(read(answer).unknown)
    for words in ("interrupted", "Which knobs matter is not known", "does not list what was tried", "not looked at"):
        assert words in said
    fitted = " ".join(read(recommendation(model_error_known_for=["client.p95_ms"])).unknown)
    assert "not in the intervals of recovery.bytes_s:" in fitted


def test_a_tuning_run_averages_repeats_and_leaves_out_what_failed() -> None:
    found = read(tuning())
    means = {option.label: option.means["client.p95_ms"] for option in found.options}
    assert means == pytest.approx({"balanced (in force)": 7.8, "high_client_ops": 7.0, "trial 1": 4.2})
    for option in found.options:
        low, high = option.seen["client.p95_ms"].interval or (0, 0)
        assert low < option.means["client.p95_ms"] < high
    assert any("1 of 6 measurements ended early" in line for line in found.unknown)


def test_more_repeats_make_narrower_intervals() -> None:
    def width(found: Findings, label: str) -> float:
        low, high = next(o for o in found.options if o.label == label).seen["client.p95_ms"].interval or (0, 0)
        return high / low

    found = read(tuning())
    assert width(found, "trial 1") < width(found, "high_client_ops")


def test_the_check_after_the_write_back_is_no_repeat() -> None:
    check = {**trials()[2], "kind": "check", "measures": {"client.p95_ms": [40.0, 1.0, 5]}}
    found = read(tuning(trials=[*trials(), check]))
    assert next(o for o in found.options if o.chosen).means["client.p95_ms"] == pytest.approx(4.2)


def test_what_is_on_the_cluster_is_taken_back_by_the_journal() -> None:
    found = read(tuning(written=True, commands=[], cluster="my lab"))
    assert found.undo == ("ceph-tuner rollback --cluster 'my lab'",)


def changed(change: Callable[[Dict[str, Any]], None], document: Dict[str, Any]) -> bytes:
    other = copy.deepcopy(document)
    change(other)
    return json.dumps(other).encode()


BAD: List[Tuple[bytes, str]] = [
    (b"", "found nothing, expected what `ceph-tuner recommend"),
    (b"{", "at line 1"),
    (b"\xff\xfe", "text in UTF-8"),
    (b"[]", "JSON of another kind"),
    (b'{"cluster": "x"}', "JSON of another kind"),
    (b"[" * 100_000, "more than 64 levels"),
    (b'{"recommended": NaN}', "the number NaN"),
    (b'{"recommended": 1e999}', "the number 1e999"),
    (b'{"recommended": ' + b"9" * 400 + b"}", "digits"),
    (changed(lambda d: d.pop("predictions"), recommendation()), "no key 'predictions'"),
    (changed(lambda d: d.update(predictions=[]), recommendation()), "predictions"),
    (changed(lambda d: d["predictions"][1].update(means=3), recommendation()), "predictions.1.means: found 3"),
    (changed(lambda d: d["recommended"].update(winner="nobody"), recommendation()), "recommended.winner"),
    (changed(lambda d: d.update(release="atlantis"), recommendation()), "release: found 'atlantis'"),
    (changed(lambda d: d["slo"].update(objectives=["a <= b"]), recommendation()), "slo.objectives"),
    (changed(lambda d: d["explanation"]["partial_dependence"][0].update(low=[]), recommendation()), "as many of each"),
    (changed(lambda d: d.update(trials=[]), tuning()), "trials"),
    (changed(lambda d: d["trials"][0].update(kind="trial"), tuning()), "no measurement of the settings in force"),
    (changed(lambda d: d["trials"][0].update(at=1e300), tuning()), "trials.0.at"),
    (changed(lambda d: d["trials"][0]["measures"].update({"client.p95_ms": [-1, 0, 1]}), tuning()), "-1"),
]


@pytest.mark.parametrize(("content", "words"), BAD, ids=[str(number) for number in range(len(BAD))])
def test_what_no_command_printed_is_refused_with_its_place(content: bytes, words: str) -> None:
    with pytest.raises(InputError) as refused:
        findings_of(answer_file.parse(content, "answer.json"))
    assert words in str(refused.value)
    assert str(refused.value).startswith("answer.json")


@pytest.mark.parametrize(
    "command",
    [
        "",
        "rm -rf /",
        "ceph 'x",
        "ceph $(reboot)",
        "ceph config set osd osd_max_scrubs 1; reboot",
        "ceph config set osd osd_max_scrubs `reboot`",
        "ceph osd pool delete rbd rbd --yes-i-really-really-mean-it",
        "ceph --out-file /etc/shadow config set osd osd_max_scrubs 1",
        "ceph config set osd osd_max_scrubs --out-file=/etc/shadow",
        "ceph config set --id=x osd_max_scrubs 1",
        "ceph config set global osd_max_scrubs 1",
        "ceph config set mon osd_max_scrubs 1",
        "ceph config set osd osd_max_scrubs 1 --force",
        "ceph config set osd auth_cluster_required none",
        "ceph config rm osd auth_cluster_required",
        "ceph config set osd osd_mclock_profile nonsense",
        "ceph config set osd osd_max_scrubs ١",
        "ceph osd pool set rbd size 1",
        "ceph osd pool set --force pg_num 8",
        "ceph osd pool set rbd pg_num 99999999",
        "ceph osd set pause",
        "systemctl restart sshd",
        "systemctl stop ceph-osd.target",
        "ceph-tuner lab exec reboot",
        "ceph-tuner rollback --cluster --all",
    ],
)
def test_a_command_that_the_product_never_writes_is_refused(command: str) -> None:
    with pytest.raises(InputError, match=r"commands\.0"):
        read(recommendation(commands=[command]))
    with pytest.raises(InputError, match=r"undo\.0"):
        read(tuning(undo=[command]))
    answer = recommendation()
    answer["beyond_live_knobs"]["changes"][0]["steps"][0]["command"] = command
    with pytest.raises(InputError, match=r"changes\.0\.steps\.0"):
        read(answer)


def test_characters_that_hide_or_turn_round_text_are_replaced() -> None:
    found = read(recommendation(cluster="a\u202eb\x1b[2Jc\n"))
    assert found.cluster == "a\ufffdb\ufffd[2Jc\ufffd"


def test_metrics_and_knobs_of_another_version_are_no_reason_to_refuse() -> None:
    answer = recommendation()
    answer["predictions"][0]["means"]["client.dreams"] = 3.0
    answer["explanation"]["importance"]["client.dreams"] = answer["explanation"]["importance"]["client.p95_ms"]
    answer["predictions"][2]["settings"]["osd_of_tomorrow"] = 1
    found = read(answer)
    assert "client.dreams" not in found.options[0].means
    assert found.after["osd_of_tomorrow"] == 1


def places(document: Any, before: Tuple[Any, ...] = ()) -> List[Tuple[Any, ...]]:
    items = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    return [before, *(place for key, value in items for place in places(value, (*before, key)))]


PLACES = [
    (kind, place) for kind, make in enumerate((recommendation, tuning)) for place in places(make()) if len(place) > 0
]
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**20), 10**20),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=5),
    st.sampled_from([[], {}, [1], {"a": 1}, LIMIT, TRIMS, "client.p95_ms", OBJECTIVES[0]["objective"]]),
)


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(PLACES), VALUES)
def test_a_damaged_answer_is_read_or_refused_and_nothing_else(place: Tuple[int, Tuple[Any, ...]], value: Any) -> None:
    kind, keys = place
    document: Any = copy.deepcopy((recommendation, tuning)[kind]())
    part = document
    for key in keys[:-1]:
        part = part[key]
    part[keys[-1]] = value
    try:
        found = read(document)
    except InputError:
        return
    assert found.options[0].in_force
