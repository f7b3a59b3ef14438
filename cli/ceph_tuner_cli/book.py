"""`ceph-tuner book`: shows and changes the plugin's book, the settings of each regime."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Sequence

import typer

from ceph_tuner.cluster import Cluster
from ceph_tuner.cluster.plugin_commands import plugin_answer
from ceph_tuner.core.atomic_write import write_text
from ceph_tuner.core.book.book import document_of, parse_book
from ceph_tuner.core.book.explanation import page_origin, page_words
from ceph_tuner.core.book.page import IMPORT, UNVALIDATED, Page
from ceph_tuner.core.book.page_check import check_page
from ceph_tuner.core.bounded import read_file, read_json
from ceph_tuner.core.changes.writer import said_of_class
from ceph_tuner.core.errors import InputError
from ceph_tuner.core.goals.stored_slo import stored_calendar
from ceph_tuner.core.profiles.profile import Profile
from ceph_tuner.core.regimes.bounds import regime_of, stored_bounds
from ceph_tuner.core.regimes.telling import calendar_turn, calendar_turned
from ceph_tuner.fleet.trust import check_newest, remember
from ceph_tuner_cli import complete, profiles
from ceph_tuner_cli.apply import OlderOption, PolicyOption
from ceph_tuner_cli.book_predict import predict
from ceph_tuner_cli.bounds_file import read_bounds
from ceph_tuner_cli.cluster_option import ClusterOption, ForceOption, TargetOption, at_work
from ceph_tuner_cli.render import Format, FormatOption, emit, say

app = typer.Typer(help="The settings of each regime, and which are in force.", no_args_is_help=True)
app.command()(predict)

PageArgument = typer.Argument(..., help="Number of the page, as `ceph-tuner book show` has it.", min=1)
ClassOption = typer.Option(
    "", "--device-class", help="Of one device class. Default: each that has objectives of its own, else the cluster."
)
WhyOption = typer.Option("", "--why", help="A word for the audit trail.")


@app.command()
def show(cluster: str = ClusterOption, form: Format = FormatOption) -> None:
    """Say which regime holds, which page is in force, what would switch it, and all pages."""
    _ask("show", {}, cluster, form)


@app.command()
def on(cluster: str = ClusterOption, device_class: str = ClassOption, form: Format = FormatOption) -> None:
    """Switch to the page of each regime as it begins. Acts at once."""
    _ask("on", _given(device_class=device_class), cluster, form)


@app.command()
def off(
    cluster: str = ClusterOption,
    device_class: str = ClassOption,
    why: str = WhyOption,
    form: Format = FormatOption,
) -> None:
    """Stop switching, and take the book's settings back."""
    _ask("off", _given(why=why, device_class=device_class), cluster, form)


@app.command()
def pin(page: int = PageArgument, cluster: str = ClusterOption, form: Format = FormatOption) -> None:
    """Have a page hold in its regime, whatever others there are."""
    _ask("pin", {"page": str(page)}, cluster, form)


@app.command()
def unpin(page: int = PageArgument, cluster: str = ClusterOption, form: Format = FormatOption) -> None:
    """Have a page that is pinned be as any other."""
    _ask("unpin", {"page": str(page)}, cluster, form)


@app.command()
def strike(
    page: int = PageArgument, cluster: str = ClusterOption, why: str = WhyOption, form: Format = FormatOption
) -> None:
    """Have a page never be used again."""
    _ask("strike", {"page": str(page), **_given(why=why)}, cluster, form)


@app.command()
def restore(
    page: int = PageArgument, cluster: str = ClusterOption, why: str = WhyOption, form: Format = FormatOption
) -> None:
    """Have a page that is struck be unvalidated again, and end what it is left out for under policies."""
    _ask("restore", {"page": str(page), **_given(why=why)}, cluster, form)


@app.command()
def copy(
    page: int = PageArgument,
    regime: str = typer.Argument(..., help="The other regime, such as busy+recovering."),
    cluster: str = ClusterOption,
    form: Format = FormatOption,
) -> None:
    """Have the settings of a page for another regime too; they are unvalidated there until a trial under it."""
    _ask("copy", {"page": str(page), "regime": regime}, cluster, form)


@app.command()
def export(
    cluster: str = ClusterOption,
    output: Optional[Path] = typer.Option(None, "--output", "-o", help="The file to write; none prints it."),
    force: bool = ForceOption,
    form: Format = FormatOption,
) -> None:
    """Print all pages as JSON, for `import` on another cluster."""
    with at_work(cluster, "asking the plugin") as connection:
        document = plugin_answer(connection.commander, "tuner book export", {})
    text = json.dumps(document, indent=2)
    if output is None:
        emit(document, form, lambda: text)
        return
    write_text(output, text + "\n", force)
    saved = {"saved": str(output), "pages": len(document["pages"])}
    emit(saved, form, lambda: f"{output}: {saved['pages']} pages")


@app.command("import")
def import_(
    file: Optional[Path] = typer.Argument(None, help="A book, as `export` gives it; none with --profile."),
    cluster: str = ClusterOption,
    profile: Optional[str] = typer.Option(
        None,
        "--profile",
        help="A profile in the place of FILE: a file, or a built-in one such as balanced.",
        autocompletion=complete.profiles,
    ),
    regime: List[str] = typer.Option(
        [], "--regime", "-R", help="With --profile: the regime that it is for, such as busy+recovering; repeatable."
    ),
    target: str = TargetOption,
    fleet: Optional[Path] = PolicyOption,
    older: bool = OlderOption,
    form: Format = FormatOption,
) -> None:
    """Take the pages of a file, or a profile as a page; they are unvalidated here until a trial under their regime."""
    if (file is None) == (profile is None):
        found = "neither a file nor --profile" if file is None else "a file and --profile"
        raise InputError("book import", found, "one of them")
    if profile is not None and not regime:
        raise InputError("--profile", "no --regime beside it", "the regimes that it is for: --regime recovering")
    if regime and profile is None:
        raise InputError("--regime", "a file beside it, whose pages name their regimes", "--profile, or no --regime")
    if file is not None:
        text = read_file(file, "a book, as `ceph-tuner book export` gives it").decode("utf-8", "replace")
        parse_book(read_json(text, str(file)), str(file))
        _ask("import", {}, cluster, form, text)
        return
    with at_work(cluster, "book import") as connection:
        source = profiles.read_vouched(str(profile), connection.version, fleet)
        if source.portable is not None:
            check_newest(connection.store, source.portable, connection.clock.now(), older)
        pages = _pages_of(source.profile, connection, regime, target)
        payload = json.dumps(document_of(pages, connection.version))
        document = plugin_answer(connection.commander, "tuner book import", {}, payload)
        if source.portable is not None:
            remember(connection.store, source.portable)
    emit(document, form, lambda: "\n".join(_words(document)))


def _pages_of(profile: Profile, cluster: Cluster, regimes: Sequence[str], target: str) -> List[Page]:
    """A page for each regime, with a profile's settings as the target's OSDs would have them. Raises InputError."""
    bounds = stored_bounds(cluster.store)
    calendar = stored_calendar(cluster.store)
    policies = () if calendar is None else calendar.policy_names
    names = dict.fromkeys(regime_of(name, bounds, policies=policies) for name in regimes)
    translation = cluster.translated(profile, target)
    say(profiles.notes(translation.notes))
    settings, at = dict(translation.settings), cluster.clock.now()
    pages = [
        Page(number, name, settings, UNVALIDATED, IMPORT, at, target, verdict=f"profile {profile.name}")
        for number, name in enumerate(names, 1)
    ]
    for page in pages:
        check_page(page, cluster.version)
    return pages


@app.command()
def bounds(
    file: Optional[Path] = typer.Argument(None, help="All markers with their bounds, as JSON."),
    default: bool = typer.Option(False, "--default", help="The default ones again."),
    cluster: str = ClusterOption,
    form: Format = FormatOption,
) -> None:
    """Take the bounds by which regimes are told from a file, or the default ones. Acts at once."""
    if (file is None) != default:
        raise InputError("book bounds", "both" if default else "nothing", "a file (JSON), or --default")
    if file is None:
        _ask("bounds", {"default": "--default"}, cluster, form)
        return
    text, _ = read_bounds(file)
    _ask("bounds", {}, cluster, form, text)


def _ask(what: str, arguments: Dict[str, str], cluster: str, form: Format, payload: str = "") -> None:
    with at_work(cluster, f"book {what}") as connection:
        document = plugin_answer(connection.commander, f"tuner book {what}", arguments, payload)
    emit(document, form, lambda: "\n".join(_words(document)))


def _given(**arguments: str) -> Dict[str, str]:
    """Those that are not left out."""
    return {name: value for name, value in arguments.items() if value}


def _regime(row: Mapping[str, Any]) -> str:
    """What holds in a scope. Plugins of earlier versions know of no calendar."""
    by, turn = calendar_turned(row.get("by_policy")), calendar_turn(row.get("turns_at"))
    return f"{row['scope'] or 'cluster'}: {row['regime']}{by and f', by {by}'}{turn and f'; {turn}'}"


def _of_part(switching: Mapping[str, Any]) -> List[str]:
    """Of the cluster or a class. Plugins of earlier versions give no preview."""
    return [str(words) for name in ("words", "preview") for words in switching.get(name, [])]


def _words(document: Mapping[str, Any]) -> List[str]:
    lines = [_regime(row) for row in document.get("regimes", [])]
    # a plugin of an earlier version has one for the whole cluster alone
    classes: Mapping[str, Any] = document.get("classes", {})
    whole: Mapping[str, Any] = document.get("switching", {})
    if whole.get("on") or not classes:
        lines += _of_part(whole)
    lines += [said_of_class(words, name) for name, part in classes.items() for words in _of_part(part)]
    lines += [f"note: {note}" for note in document.get("notes", [])]
    for page in document.get("pages", []):
        pinned, why = ", pinned" if page["pin"] else "", page_words(page)
        settings = ", ".join(f"{name}={value}" for name, value in sorted(page["settings"].items()))
        lines.append(f"page {page['number']}, {page['regime']}: {page['state']}{pinned}, by {page_origin(page)}")
        lines.append(f"  {page['target']}: {settings}")
        lines += [f"  {why}"] if why else []
    return lines
