"""`ceph-tuner boost`: what it asks of the plugin, and what comes of its errors."""

from __future__ import annotations

import errno
import json

import pytest
from plugin_answers import PluginAnswers, plugin_answering

from ceph_tuner.core.errors import CommandFailed
from running_program import Run

DOCUMENT = {"phase": "on", "words": ["on since 2026-11-24 10:00:00 UTC", "done in 12 min (11 min to 15 min)"]}


@pytest.fixture
def plugin(monkeypatch: pytest.MonkeyPatch) -> PluginAnswers:
    return plugin_answering(monkeypatch, lambda prefix: DOCUMENT)


@pytest.mark.parametrize("kind", ["recovery", "backfill", "scrub", "snaptrim"])
def test_it_begins_one_and_says_when_it_will_be_done(run: Run, plugin: PluginAnswers, kind: str) -> None:
    code, out, _ = run(
        "boost", kind, "-c", "a", "--at-most", "2h", "--keep", "client.p95_ms<=20", "--keep", "ops.slow<=0"
    )
    assert (code, out.splitlines()) == (0, DOCUMENT["words"])
    keep = "client.p95_ms<=20;ops.slow<=0"
    # the order is that of the plugin's declaration: the `ceph` program takes them by their place
    (asked,) = plugin.asked
    assert asked[0] == f"tuner boost {kind}"
    assert list(asked[1].items()) == [("until", "clean"), ("at_most", "2h"), ("who", "osd"), ("keep", keep)]


def test_a_dry_run_asks_for_no_command_that_begins_a_boost_and_shows_what_would_be_written(
    run: Run, plugin: PluginAnswers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(DOCUMENT, "commands", ["ceph config set osd osd_max_scrubs 6"])
    code, out, _ = run("boost", "scrub", "-c", "a", "--dry-run")
    assert (code, out.splitlines()) == (0, [*DOCUMENT["words"], "ceph config set osd osd_max_scrubs 6"])
    (asked,) = plugin.asked
    # Ceph drops what a command does not know: as an option of it, an older plugin would begin
    assert asked[0] == "tuner boost foretell"
    assert list(asked[1].items()) == [("kind", "scrub"), ("until", "clean"), ("at_most", "6h"), ("who", "osd")]


def test_a_plugin_that_can_foretell_no_boost_refuses_a_dry_run(run: Run, plugin: PluginAnswers) -> None:
    plugin.error = CommandFailed("ceph tuner boost foretell", -errno.EINVAL, "no valid command found; 10 closest:")
    code, _, error = run("boost", "recovery", "-c", "a", "--dry-run", "--keep", "client.p95_ms<=20")
    assert code == 2
    assert "ceph-tuner mgr install" in " ".join(error.split())
    assert [command for command, _, _ in plugin.asked] == ["tuner boost foretell"]


def test_its_status_and_its_end(run: Run, plugin: PluginAnswers) -> None:
    assert json.loads(run("boost", "status", "-c", "a", "--format", "json")[1]) == DOCUMENT
    assert run("boost", "cancel", "-c", "a", "--why", "enough")[0] == 0
    assert plugin.asked == [("tuner boost status", {}, ""), ("tuner boost cancel", {"why": "enough"}, "")]


@pytest.mark.parametrize(
    ("code", "words", "exit_code", "shown"),
    [
        (-errno.EAGAIN, "there is nothing to boost: no degraded object copies are left", 3, "nothing to boost"),
        (-errno.EINVAL, "--at-most: found 9 d, expected 1min to 7d", 2, "--at-most: found 9 d, expected 1min to 7d"),
        (-errno.EINVAL, "no valid command found; 10 closest matches:", 2, "ceph-tuner mgr install"),
        (-errno.EIO, "the boost ended at once: osd.2 does not show it", 4, "osd.2 does not show it"),
    ],
)
def test_the_plugins_errors_keep_their_meaning(
    run: Run, plugin: PluginAnswers, code: int, words: str, exit_code: int, shown: str
) -> None:
    plugin.error = CommandFailed("ceph tuner boost recovery", code, words)
    ended, _, error = run("boost", "recovery", "-c", "a")
    assert ended == exit_code
    assert shown in " ".join(error.split())
