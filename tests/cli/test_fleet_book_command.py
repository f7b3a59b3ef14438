"""`ceph-tuner fleet book`: what each book has, and which pages go from one cluster to others."""

from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Tuple

import pytest

from ceph_tuner.cluster.connection import Cluster
from ceph_tuner.core.book.book import Book, parse_book
from ceph_tuner.core.book.page import TRIAL, UNVALIDATED, VALIDATED, Page
from ceph_tuner.core.ceph.stored_document import versioned
from ceph_tuner.core.errors import ClusterNotFound, CommandFailed
from ceph_tuner.core.knobs.releases import RELEASES, format_version, nine
from ceph_tuner.core.regimes.bounds import BOUNDS_KEY, Marker, RegimeBounds
from ceph_tuner.fleet import books
from ceph_tuner.fleet.contract import Member
from monitors import ManualClock, Monitors
from running_program import Run

SHARES = nine((0.5, 4, 0), (0.3, 1, 0.6), (0.1, 1, 0.3))
RECOVERING = Page(3, "recovering", {"osd_max_scrubs": 4}, VALIDATED, TRIAL, 1.0, verdict="client.p95_ms -20%")
BUSY = Page(7, "busy+recovering", SHARES, VALIDATED, TRIAL, 2.0, pin=True)
GUESSED = Page(8, "idle", {"osd_max_scrubs": 2}, UNVALIDATED, TRIAL, 2.0)


class Plugin:
    """A cluster of the fleet: its plugin, and what it stands on."""

    def __init__(self, *pages: Page, release: str = "tentacle", version: str = "20.2.4") -> None:
        self.monitors = Monitors()
        self.release, self.version = RELEASES[release], version
        self.book = Book(pages, max((page.number for page in pages), default=0))
        self.error: Optional[Exception] = None

    def mon(self, prefix: str, arguments: Mapping[str, str], payload: str = "") -> str:
        pages = [page.to_dict() for page in self.book.pages]
        if self.error is not None and prefix.startswith("tuner "):
            raise self.error
        if prefix in ("osd metadata", "mgr stat"):
            return "[]" if prefix == "osd metadata" else "{}"
        if prefix == "tuner book import":
            self.book = self.book.imported(parse_book(json.loads(payload), "it").pages, 9.0)
        document: Dict[str, Any] = versioned({"pages": pages})
        if prefix == "tuner book show":
            document["regimes"] = [{"scope": "", "regime": "busy"}]
            document["switching"] = {"on": True, "phase": "holding", "page": 3}
            document["classes"], document["notes"] = {}, ["an option makes no sense"]
        return json.dumps(document)

    def capacity(self, iops: float) -> None:
        for osd in range(3):
            for kind in ("hdd", "ssd"):
                self.monitors.set(f"osd.{osd}", f"osd_mclock_max_capacity_iops_{kind}", str(iops))


@pytest.fixture
def plugins(monkeypatch: pytest.MonkeyPatch) -> Dict[str, Plugin]:
    found = {"paris": Plugin(RECOVERING, BUSY, GUESSED), "rome": Plugin(), "milan": Plugin()}

    def opening(member: Member, timeout: float) -> Cluster:
        if member.name not in found:
            raise ClusterNotFound(f"cluster {member.name}", "no monitor", "one that answers")
        own = found[member.name]
        commander: Any = own
        return Cluster(
            member.name, commander, own.monitors, own.monitors.store, own.release, own.version, clock=ManualClock()
        )

    monkeypatch.setattr(books, "open_member", opening)
    return found


@pytest.fixture
def fleet(tmp_path: Path) -> List[str]:
    path = tmp_path / "fleet.yaml"
    clusters = "".join(f"  {name}: {{lab: {name}}}\n" for name in ("paris", "rome", "milan", "oslo"))
    path.write_text(f"schema: 1\nclusters:\n{clusters}")
    return ["--fleet", str(path)]


def rows(out: str) -> Dict[str, List[str]]:
    return {line.split()[0]: line.split()[1:] for line in out.splitlines()}


def test_each_book_has_a_row(run: Run, plugins: Dict[str, Plugin], fleet: List[str]) -> None:
    code, out, err = run("fleet", "book", "show", *fleet)
    assert code == 1
    assert rows(out)["paris"] == ["on", "busy", "3", "2", "1", "0"]
    assert rows(out)["rome"] == ["on", "busy", "3", "0", "0", "0"]
    assert rows(out)["oslo"] == ["down", "-", "-", "-", "-", "-"]
    told = " ".join(err.split())
    assert "oslo: found no monitor" in told
    assert "paris: an option makes no sense" in told
    code, out, _ = run("fleet", "book", "show", "paris", *fleet, "--format", "json")
    (document,) = json.loads(out)
    assert (code, [page["number"] for page in document["book"]["pages"]]) == (0, [3, 7, 8])


def test_one_without_the_plugin_answers_and_has_no_book(run: Run, plugins: Dict[str, Plugin], fleet: List[str]) -> None:
    absent = "Module 'tuner' is not enabled/loaded (required by command 'tuner book show')"
    plugins["rome"].error = CommandFailed("ceph tuner book show", -errno.EOPNOTSUPP, f"Error EOPNOTSUPP: {absent}")
    code, out, err = run("fleet", "book", "show", "paris", "rome", *fleet)
    assert (code, rows(out)["rome"]) == (1, ["declined", "-", "-", "-", "-", "-"])
    assert f"rome: Error EOPNOTSUPP: {absent}" in " ".join(err.split())
    code, out, _ = run("fleet", "book", "offer", "paris", "rome", *fleet, "--format", "json")
    (document,) = json.loads(out)
    assert (code, document["answer"], document["taken"]) == (1, "declined", None)
    code, _, err = run("fleet", "book", "offer", "rome", "paris", *fleet)
    assert code == 4
    assert absent in " ".join(err.split())


def test_what_one_validated_is_unvalidated_elsewhere(run: Run, plugins: Dict[str, Plugin], fleet: List[str]) -> None:
    before = plugins["rome"].book
    code, out, err = run("fleet", "book", "offer", "paris", "rome", *fleet)
    assert code == 0
    assert rows(out)["rome"] == ["2", "0", "0", "recovering,", "busy+recovering"]
    assert "nothing is changed: add --yes" in " ".join(err.split())
    assert plugins["rome"].book == before
    assert run("fleet", "book", "offer", "paris", "rome", *fleet, "--yes")[0] == 0
    taken = plugins["rome"].book.pages
    assert [(page.regime, page.state, page.origin, page.pin) for page in taken] == [
        ("recovering", UNVALIDATED, "import", False),
        ("busy+recovering", UNVALIDATED, "import", False),
    ]
    assert taken[0].verdict == "of paris: client.p95_ms -20%"
    assert dict(taken[1].settings) == SHARES
    code, out, err = run("fleet", "book", "offer", "paris", "rome", *fleet)
    assert (code, rows(out)["rome"]) == (0, ["0", "2", "0", "-"])
    assert "nothing is changed" not in err


def test_a_page_that_its_own_cluster_would_not_take_is_left_out(
    run: Run, plugins: Dict[str, Plugin], fleet: List[str]
) -> None:
    # three of the nine values, and a knob that needs a restart: whoever may write a cluster's store
    partly = Page(4, "busy", {"osd_mclock_scheduler_client_res": 30}, VALIDATED, TRIAL, 1.0)
    late = Page(5, "busy", {"osd_op_num_shards_ssd": 5}, VALIDATED, TRIAL, 1.0)
    plugins["milan"] = Plugin(RECOVERING, partly, late, release="quincy-early", version="17.2.5")
    plugins["rome"] = Plugin(release="quincy-early", version="17.2.5")
    code, out, err = run("fleet", "book", "offer", "milan", "rome", *fleet)
    assert (code, rows(out)["rome"][0]) == (0, "1")
    told = " ".join(err.split())
    assert "page 4, busy: page 4, osd_mclock_scheduler_client_res: found 1 of the nine mClock values" in told
    assert "page 5, busy: " in told


def test_pages_go_to_no_other_release_and_to_no_unlike_osds(
    run: Run, plugins: Dict[str, Plugin], fleet: List[str]
) -> None:
    plugins["paris"].capacity(400.0)
    plugins["rome"] = Plugin(release="reef", version="18.2.7")
    plugins["milan"].capacity(1200.0)
    code, out, err = run("fleet", "book", "offer", "paris", *fleet, "--yes")
    assert code == 1
    assert rows(out)["rome"] == rows(out)["milan"] == ["0", "0", "2", "-"]
    assert rows(out)["oslo"][0] == "down"
    told = " ".join(err.split())
    assert "rome: page 3, recovering: release: found settings validated on Tentacle" in told
    assert "milan: page 7, busy+recovering: hardware: found an OSD had 400 IOPS there, and 1200 here" in told
    assert plugins["rome"].book.pages == plugins["milan"].book.pages == ()


def test_in_a_fleet_of_two_releases_each_has_its_own_pages(
    run: Run, plugins: Dict[str, Plugin], fleet: List[str]
) -> None:
    plugins["milan"] = Plugin(RECOVERING, release="reef", version="18.2.7")
    plugins["rome"] = Plugin(release="reef", version="18.2.2")
    code, out, _ = run("fleet", "book", "show", "paris", "milan", *fleet)
    assert (code, rows(out)["paris"][3], rows(out)["milan"][3]) == (0, "2", "1")
    code, out, err = run("fleet", "book", "offer", "milan", "rome", "paris", *fleet, "--yes")
    assert code == 1
    assert [rows(out)[name][:3] for name in ("rome", "paris")] == [["1", "0", "0"], ["0", "0", "1"]]
    assert "paris: page 3, recovering: release: found settings validated on Reef" in " ".join(err.split())
    assert [page.state for page in plugins["rome"].book.pages] == [UNVALIDATED]


def test_shares_of_a_release_of_iops_are_those_of_the_other_osds(
    run: Run, plugins: Dict[str, Plugin], fleet: List[str]
) -> None:
    release = next(release for release in RELEASES.values() if release.units == "iops")
    version = format_version(release.newest)
    whole = dict(SHARES)
    whole.update({name: 100 for name in SHARES if name.endswith("_res")})
    whole.update({name: 0 if "client" in name else 300 for name in SHARES if name.endswith("_lim")})
    plugins["paris"] = Plugin(Page(1, "busy", whole, VALIDATED, TRIAL, 1.0), release=release.name, version=version)
    plugins["rome"] = Plugin(release=release.name, version=version)
    plugins["paris"].capacity(1000.0)
    plugins["rome"].capacity(2000.0)
    assert run("fleet", "book", "offer", "paris", "rome", *fleet, "--yes")[0] == 0
    (page,) = plugins["rome"].book.pages
    assert page.settings["osd_mclock_scheduler_client_res"] == 200


def test_a_regime_that_the_other_does_not_know_is_refused_by_name(
    run: Run, plugins: Dict[str, Plugin], fleet: List[str]
) -> None:
    bounds = RegimeBounds((Marker("recovering", "recovery.objects_left", 1, 0),))
    plugins["rome"].monitors.store.set(BOUNDS_KEY, json.dumps(bounds.to_dict()))
    code, out, _ = run("fleet", "book", "offer", "paris", "rome", *fleet, "--format", "json", "--yes")
    (document,) = json.loads(out)
    assert code == 0
    assert [page["regime"] for page in document["taken"]["pages"]] == ["recovering"]
    assert "page 7, busy+recovering: regime" in document["taken"]["refused"][0]
    assert [page.regime for page in plugins["rome"].book.pages] == ["recovering"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("rome",), "the book of rome: found no page that is validated"),
        (("paris", "paris"), "no cluster beside paris"),
        (("nobody",), "no cluster 'nobody'"),
        (("oslo",), "no monitor"),
    ],
)
def test_there_must_be_a_page_and_somebody_to_have_it(
    run: Run, plugins: Dict[str, Plugin], fleet: List[str], arguments: Tuple[str, ...], words: str
) -> None:
    code, _, err = run("fleet", "book", "offer", *arguments, *fleet, "--yes")
    assert code == 2
    assert words in " ".join(err.split())
    assert plugins["milan"].book.pages == ()


def test_what_was_taken_before_ctrl_c_is_told(
    run: Run, plugins: Dict[str, Plugin], fleet: List[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import ceph_tuner_cli.fleet as shown

    ask_all = shown.ask_all

    def interrupted_after_the_first(members: Any, ask: Any, within_s: float) -> Any:
        yield next(ask_all(members[:1], ask, within_s))
        raise KeyboardInterrupt

    monkeypatch.setattr(shown, "ask_all", interrupted_after_the_first)
    code, out, _ = run("fleet", "book", "offer", "paris", "rome", "milan", *fleet, "--yes")
    assert code == 130
    assert rows(out)["rome"][0] == "2"
    assert rows(out)["milan"][:2] == ["not", "asked"]
    assert plugins["milan"].book.pages == ()
