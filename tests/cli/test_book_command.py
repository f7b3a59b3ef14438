"""`ceph-tuner book`: what it asks of the plugin, what it shows, and files that it reads and writes."""

from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

import pytest
from plugin_answers import PluginAnswers, plugin_answering

from ceph_tuner.core.book.book import parse_book
from ceph_tuner.core.errors import CommandFailed
from running_program import Run

PAGE: Dict[str, Any] = {
    "number": 3,
    "regime": "recovering",
    "settings": {"osd_max_scrubs": 1, "osd_mclock_profile": "high_recovery_ops"},
    "state": "validated",
    "origin": "trial",
    "at": 1767225600.0,
    "target": "osd",
    "load": {},
    "effects": {},
    "verdict": "client.p95_ms -20%",
    "reason": "",
    "pin": True,
    "policy": "",
    "left_out": {},
}
BOOK: Dict[str, Any] = {"version": 1, "pages": [PAGE]}
SHOWN: Dict[str, Any] = {
    "regimes": [{"scope": "", "regime": "recovering"}],
    "switching": {"words": ["page 3 is in force, for the regime recovering"]},
    "notes": ["an option makes no sense"],
    "pages": [PAGE],
}


@pytest.fixture
def plugin(monkeypatch: pytest.MonkeyPatch) -> PluginAnswers:
    documents = {"osd metadata": [], "tuner book export": BOOK}
    return plugin_answering(monkeypatch, lambda prefix: documents.get(prefix, SHOWN))


def test_it_shows_what_is_in_force_and_the_pages(run: Run, plugin: PluginAnswers) -> None:
    code, out, _ = run("book", "show", "-c", "a")
    assert (code, out.splitlines()) == (
        0,
        [
            "cluster: recovering",
            "page 3 is in force, for the regime recovering",
            "note: an option makes no sense",
            "page 3, recovering: validated, pinned, by trial",
            "  osd: osd_max_scrubs=1, osd_mclock_profile=high_recovery_ops",
            "  client.p95_ms -20%",
        ],
    )
    assert json.loads(run("book", "show", "-c", "a", "--format", "json")[1]) == SHOWN


def test_it_says_what_on_would_do_while_the_book_is_off(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    off = {"on": False, "words": ["the book is off"], "preview": ["`book on` would put page 3 in force"]}
    plugin_answering(monkeypatch, lambda prefix: {**SHOWN, "switching": off})
    _, out, _ = run("book", "show", "-c", "a")
    assert out.splitlines()[1:3] == ["the book is off", "`book on` would put page 3 in force"]


def test_it_says_what_the_calendar_has_to_do_with_the_regime(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [
        {"scope": "", "regime": "office", "by_policy": "office", "turns_at": 1767294000.0},
        {"scope": "class=ssd", "regime": "idle", "by_policy": None, "turns_at": None},
    ]
    plugin_answering(monkeypatch, lambda prefix: {**SHOWN, "regimes": rows, "pages": []})
    _, out, _ = run("book", "show", "-c", "a")
    first, second, *_ = out.splitlines()
    assert first == (
        "cluster: office, by the calendar, as the policy office began; the calendar turns it at 2026-01-01 19:00 UTC"
    )
    assert second == "class=ssd: idle"


def test_it_says_under_which_policies_a_page_is_left_out_and_takes_pages_of_earlier_plugins(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    missed = {**PAGE, "policy": "night", "left_out": {"office": "slo: client.p95_ms is 12 ms"}}
    earlier = {name: value for name, value in PAGE.items() if name not in ("policy", "left_out")}
    plugin_answering(monkeypatch, lambda prefix: {**SHOWN, "pages": [missed, earlier]})
    _, out, _ = run("book", "show", "-c", "a")
    lines = out.splitlines()[3:]
    assert lines[0] == "page 3, recovering: validated, pinned, by trial under night"
    assert lines[2] == "  left out under office: slo: client.p95_ms is 12 ms"
    assert (lines[3], lines[5]) == ("page 3, recovering: validated, pinned, by trial", "  client.p95_ms -20%")


@pytest.mark.parametrize(
    ("words", "command", "arguments"),
    [
        (["on"], "on", {}),
        (["off", "--why", "enough"], "off", {"why": "enough"}),
        (["pin", "3"], "pin", {"page": "3"}),
        (["unpin", "3"], "unpin", {"page": "3"}),
        (["strike", "3", "--why", "old"], "strike", {"page": "3", "why": "old"}),
        (["restore", "3", "--why", "new disks"], "restore", {"page": "3", "why": "new disks"}),
        (["restore", "3"], "restore", {"page": "3"}),
        (["copy", "3", "busy+recovering"], "copy", {"page": "3", "regime": "busy+recovering"}),
    ],
)
def test_what_it_asks(
    run: Run, plugin: PluginAnswers, words: List[str], command: str, arguments: Dict[str, str]
) -> None:
    assert run("book", *words, "-c", "a")[0] == 0
    assert plugin.asked == [(f"tuner book {command}", arguments, "")]


def test_a_book_is_written_to_a_file_and_read_from_it(run: Run, plugin: PluginAnswers, tmp_path: Path) -> None:
    file = tmp_path / "book.json"
    assert run("book", "export", "-c", "a", "-o", str(file))[0] == 0
    assert parse_book(json.loads(file.read_text()), "it").page(3).to_dict() == PAGE
    assert run("book", "export", "-c", "a", "-o", str(file))[0] == 2
    assert run("book", "export", "-c", "a", "-o", str(file), "--force")[0] == 0
    assert json.loads(run("book", "export", "-c", "a")[1]) == BOOK
    assert run("book", "import", str(file), "-c", "a")[0] == 0
    assert plugin.asked[-1] == ("tuner book import", {}, file.read_text())


def test_a_file_that_is_no_book_is_refused_before_anything_is_asked(
    run: Run, plugin: PluginAnswers, tmp_path: Path
) -> None:
    file = tmp_path / "book.json"
    for text in ("tea", '{"pages": [{"number": 1}]}'):
        file.write_text(text)
        code, _, error = run("book", "import", str(file), "-c", "a")
        assert code == 2
        assert "book.json" in error
    assert run("book", "import", str(tmp_path / "none"), "-c", "a")[0] == 2
    assert plugin.asked == []


def test_a_profile_becomes_a_page_of_each_regime_that_is_named(run: Run, plugin: PluginAnswers) -> None:
    regimes = ("--regime", "recovering+busy", "-R", "idle", "-R", "busy+recovering")
    code, out, _ = run("book", "import", "--profile", "high_recovery_ops", *regimes, "-c", "a")
    assert code == 0
    assert out.startswith("cluster: recovering")
    prefix, arguments, payload = plugin.asked[-1]
    assert (prefix, arguments) == ("tuner book import", {})
    pages = parse_book(json.loads(payload), "it").pages
    assert [(page.number, page.regime) for page in pages] == [(1, "busy+recovering"), (2, "idle")]
    assert {page.state for page in pages} == {"unvalidated"}
    assert {page.origin for page in pages} == {"import"}
    assert [dict(page.settings) for page in pages] == 2 * [{"osd_mclock_profile": "high_recovery_ops"}]
    assert pages[0].verdict == "profile high_recovery_ops"


def test_a_profile_of_a_file_is_translated_and_stands_for_its_target(
    run: Run, plugin: PluginAnswers, tmp_path: Path
) -> None:
    file = tmp_path / "scrubs.yaml"
    file.write_text("schema: 1\nname: scrubs\nrelease: tentacle\nsettings: {osd_max_scrubs: 2}\n")
    code, _, _ = run("book", "import", "--profile", str(file), "-R", "scrub-late", "-t", "osd/class:ssd", "-c", "a")
    assert code == 0
    (page,) = parse_book(json.loads(plugin.asked[-1][2]), "it").pages
    assert (page.target, dict(page.settings)) == ("osd/class:ssd", {"osd_max_scrubs": 2})


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ((), "neither a file nor --profile"),
        (("book.json", "--profile", "balanced", "-R", "idle"), "a file and --profile"),
        (("--profile", "balanced"), "--profile: found no --regime beside it, expected the regimes that it is for"),
        (("book.json", "-R", "idle"), "--regime: found a file beside it, whose pages name their regimes"),
        (("--profile", "balanced", "-R", "asleep"), "idle, or with + between them: busy"),
        (("--profile", "nowhere", "-R", "idle"), "nowhere"),
    ],
)
def test_a_profile_without_a_regime_of_the_cluster_is_refused(
    run: Run, plugin: PluginAnswers, words: Tuple[str, ...], shown: str
) -> None:
    code, _, error = run("book", "import", *words, "-c", "a")
    assert code == 2
    assert shown in " ".join(error.split())
    assert not [prefix for prefix, _, _ in plugin.asked if prefix == "tuner book import"]


def test_a_profile_with_a_knob_that_needs_a_restart_is_no_page(run: Run, plugin: PluginAnswers, tmp_path: Path) -> None:
    file = tmp_path / "threads.yaml"
    file.write_text("schema: 1\nname: threads\nrelease: tentacle\nsettings: {osd_op_num_threads_per_shard_hdd: 2}\n")
    code, _, error = run("book", "import", "--profile", str(file), "-R", "idle", "-c", "a")
    assert code == 2
    assert "needs no restart" in " ".join(error.split())


def test_the_plugins_refusal_keeps_its_meaning(run: Run, plugin: PluginAnswers) -> None:
    plugin.error = CommandFailed("ceph tuner book pin", -errno.EINVAL, "book: found no page 9, expected a page")
    code, _, error = run("book", "pin", "9", "-c", "a")
    assert code == 2
    assert "book: found no page 9, expected a page" in " ".join(error.split())


MARKERS = {"dwell_s": 5, "markers": [{"name": "writing", "metric": "client.write_iops", "enter": 2, "leave": 1}]}


def test_other_bounds_are_sent_along_and_the_default_ones_asked_for(
    run: Run, plugin: PluginAnswers, tmp_path: Path
) -> None:
    path = tmp_path / "regimes.json"
    path.write_text(json.dumps(MARKERS))
    assert run("book", "bounds", str(path), "-c", "a")[0] == 0
    assert run("book", "bounds", "--default", "-c", "a")[0] == 0
    assert plugin.asked == [
        ("tuner book bounds", {}, json.dumps(MARKERS)),
        ("tuner book bounds", {"default": "--default"}, ""),
    ]


@pytest.mark.parametrize(
    ("text", "arguments", "words"),
    [
        ("{", [], "regimes.json"),
        ('{"markers": [{"name": "idle"}]}', [], "markers.0.metric"),
        (json.dumps(MARKERS), ["--default"], "found both"),
        (None, [], "found nothing"),
    ],
)
def test_bounds_that_make_no_sense_are_refused_before_the_cluster_is_asked(
    run: Run, plugin: PluginAnswers, tmp_path: Path, text: Optional[str], arguments: List[str], words: str
) -> None:
    path = tmp_path / "regimes.json"
    path.write_text(text or "")
    code, _, error = run("book", "bounds", *([str(path)] if text else []), *arguments, "-c", "a")
    assert code == 2
    assert words in " ".join(error.split())
    assert plugin.asked == []
