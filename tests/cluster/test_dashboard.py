from __future__ import annotations

import contextlib
import errno
import json
import socket
import threading
from pathlib import Path
from typing import Any, Callable, Iterator, List, Mapping, cast

import pytest

from ceph_tuner.cluster.dashboard import Dashboard, NotByRest, StatedOption
from ceph_tuner.cluster.dashboard_api import VERSION, DashboardApi
from ceph_tuner.core.ceph.commands import CommandConfig, CommandStore, osd_versions
from ceph_tuner.core.ceph.target import Place
from ceph_tuner.core.errors import ClusterNotFound, ClusterTimeout, CommandFailed, PermissionRefused, TunerError
from fake_dashboard import PAGES, PASSWORD, USER, Asked, FakeDashboard, certificates, serving
from monitors import ManualClock


@pytest.fixture
def fake() -> Iterator[FakeDashboard]:
    with serving(FakeDashboard(dict(PAGES))) as dashboard:
        yield dashboard


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def api(fake: FakeDashboard, clock: ManualClock) -> Iterator[DashboardApi]:
    made = DashboardApi("berlin", [fake.url], USER, lambda: PASSWORD, clock)
    yield made
    made.close()


def test_one_login_serves_all_calls_in_the_version_that_is_asked_for(fake: FakeDashboard, api: DashboardApi) -> None:
    assert api.get("summary") == api.get("summary") == PAGES["/api/summary"]
    assert [(asked.method, asked.path, asked.token) for asked in fake.asked] == [
        ("POST", "/api/auth", ""),
        ("GET", "/api/summary", "token-1"),
        ("GET", "/api/summary", "token-1"),
    ]
    assert {asked.accept for asked in fake.asked} == {VERSION}


def test_a_token_that_is_no_longer_good_is_renewed_once(fake: FakeDashboard, api: DashboardApi) -> None:
    api.get("summary")
    fake.valid.clear()
    assert api.get("summary") == PAGES["/api/summary"]
    assert fake.logins == 2


def test_tokens_that_are_never_good_end_the_call(fake: FakeDashboard, api: DashboardApi) -> None:
    fake.before = lambda asked: (401, {}) if asked.method == "GET" else None
    with pytest.raises(PermissionRefused, match="none of its own tokens"):
        api.get("summary")
    assert fake.logins == 2


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_a_busy_dashboard_is_asked_again_after_ever_longer_waits(
    fake: FakeDashboard, api: DashboardApi, clock: ManualClock, status: int
) -> None:
    waits: List[float] = []
    sleep = clock.sleep
    clock.sleep = lambda seconds: (waits.append(seconds), sleep(seconds))[1]  # type: ignore[method-assign]
    fake.before = lambda asked: (status, b"busy") if asked.method == "GET" and len(waits) < 3 else None
    assert api.get("summary") == PAGES["/api/summary"]
    assert waits == [0.5, 1.0, 2.0]


def test_a_dashboard_that_stays_busy_ends_in_a_timeout_that_names_it(fake: FakeDashboard, api: DashboardApi) -> None:
    fake.before = lambda asked: (503, b"")
    with pytest.raises(ClusterTimeout, match=rf"berlin: its dashboard at {fake.url} is busy or stands by \(503"):
        api.get("summary")


def test_a_wrong_password_is_tried_once_and_never_shown(fake: FakeDashboard, clock: ManualClock) -> None:
    api = DashboardApi("berlin", [fake.url], USER, lambda: "wr0ng", clock)
    with pytest.raises(PermissionRefused, match="refuses tuner's password") as refusal:
        api.get("summary")
    assert fake.logins == 1
    assert "wr0ng" not in str(refusal.value)


@pytest.mark.parametrize("status", [200, 400, 403, 418, 500])
@pytest.mark.parametrize("path", ["/api/auth", "/api/summary"])
def test_a_server_that_repeats_what_it_was_told_gives_nothing_away(
    fake: FakeDashboard, api: DashboardApi, status: int, path: str
) -> None:
    told = {"detail": f"{USER} {PASSWORD} token-1", "token": None}
    if path == "/api/summary":
        told = {"detail": "token-1"}
    for answer in (told, json.dumps(told).encode()[:-1]):
        fake.before = lambda asked, answer=answer: (status, answer) if asked.path == path else None
        with contextlib.suppress(TunerError):
            api.get("summary")
        try:
            api.get("summary")
        except TunerError as error:
            shown = f"{error!r} {error} {error.__cause__!r}"
            assert PASSWORD not in shown
            assert "token-1" not in shown


@pytest.mark.parametrize("nonsense", [b"<html>", b"", b"\xff\xfe", b"[" * 100_000, b'{"a": 1'])
def test_what_is_no_json_is_one_line(fake: FakeDashboard, api: DashboardApi, nonsense: bytes) -> None:
    fake.pages["/api/summary"] = nonsense
    with pytest.raises(CommandFailed, match=r"GET /api/summary.*instead of JSON") as refusal:
        api.get("summary")
    assert "\n" not in str(refusal.value)


def test_an_error_of_the_dashboard_is_told_in_its_words(api: DashboardApi) -> None:
    with pytest.raises(CommandFailed, match="answered 404 The path '/api/nothing' was not found"):
        api.get("nothing")


def test_a_role_that_may_not_is_told_what_it_needs(fake: FakeDashboard, api: DashboardApi) -> None:
    fake.before = lambda asked: (403, {"detail": "no"}) if asked.method == "GET" else None
    with pytest.raises(PermissionRefused, match="a role of tuner that does not allow it, expected a role that reads"):
        api.get("cluster_conf")


def test_a_password_that_must_be_changed_is_said(fake: FakeDashboard, api: DashboardApi) -> None:
    fake.before = lambda asked: (201, {"token": "t", "pwdUpdateRequired": True}) if asked.method == "POST" else None
    with pytest.raises(PermissionRefused, match="must be changed first"):
        api.get("summary")


def test_a_mgr_that_stands_by_is_passed_over_and_no_redirection_followed(
    fake: FakeDashboard, clock: ManualClock
) -> None:
    with serving(FakeDashboard({})) as standby:
        standby.before = lambda asked: (303, b"")
        api = DashboardApi("berlin", [standby.url, fake.url], USER, lambda: PASSWORD, clock)
        assert api.get("summary") == PAGES["/api/summary"]
        assert api.get("summary") == PAGES["/api/summary"]
        # the second call began with the active one
        assert len(standby.asked) == 1
        lonely = DashboardApi("berlin", [standby.url], USER, lambda: PASSWORD, clock)
        with pytest.raises(ClusterNotFound, match=r"redirects elsewhere: its mgr stands by"):
            lonely.get("summary")


STANDBY_PAGES = [(500, b"<html>standby</html>"), (404, b"nothing here"), (403, b"<html>"), (200, b"<html>"), (400, b"")]


@pytest.mark.parametrize(("status", "page"), STANDBY_PAGES)
def test_an_address_that_speaks_no_json_is_passed_over(
    fake: FakeDashboard, clock: ManualClock, status: int, page: bytes
) -> None:
    with serving(FakeDashboard({})) as standby:
        standby.before = lambda asked: (status, page)
        api = DashboardApi("berlin", [standby.url, fake.url], USER, lambda: PASSWORD, clock)
        assert api.get("summary") == PAGES["/api/summary"]
        # the second call began with the active one
        assert api.get("summary") == PAGES["/api/summary"]
        assert len(standby.asked) == 1
        # which goes, and is asked with the token that is there
        fake.before, standby.before = standby.before, lambda asked: None
        standby.pages, standby.valid = PAGES, fake.valid
        assert api.get("summary") == PAGES["/api/summary"]
        assert (fake.logins, standby.logins) == (1, 0)


@pytest.mark.parametrize(("status", "page"), STANDBY_PAGES)
def test_where_no_address_speaks_json_that_is_said_unless_there_is_more_to_say(
    fake: FakeDashboard, clock: ManualClock, status: int, page: bytes
) -> None:
    fake.before = lambda asked: (status, page)
    with pytest.raises(CommandFailed, match=rf"POST /api/auth.*answered {status} with something instead of JSON"):
        DashboardApi("berlin", [fake.url] * 2, USER, lambda: PASSWORD, clock).get("summary")
    with serving(FakeDashboard({})) as busy:
        busy.before = lambda asked: (503, b"")
        for urls in ([busy.url, fake.url], [fake.url, busy.url]):
            with pytest.raises(ClusterTimeout, match="is busy or stands by"):
                DashboardApi("berlin", urls, USER, lambda: PASSWORD, clock).get("summary")


@pytest.mark.parametrize("status", [400, 401, 403, 404, 500])
@pytest.mark.parametrize("path", ["/api/auth", "/api/summary"])
def test_what_the_api_itself_refuses_is_final(fake: FakeDashboard, clock: ManualClock, status: int, path: str) -> None:
    with serving(FakeDashboard(dict(PAGES))) as other:
        fake.before = lambda asked: (status, {"detail": "no"}) if asked.path == path else None
        with pytest.raises((PermissionRefused, CommandFailed)):
            DashboardApi("berlin", [fake.url, other.url], USER, lambda: PASSWORD, clock).get("summary")
        assert other.asked == []


def test_an_address_where_nothing_listens_is_passed_over_and_alone_named(fake: FakeDashboard) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        nobody = f"http://127.0.0.1:{unused.getsockname()[1]}"
        clock = ManualClock()
        assert DashboardApi("berlin", [nobody, fake.url], USER, lambda: PASSWORD, clock).get("summary")
        with pytest.raises(ClusterNotFound, match=rf"berlin: found no dashboard at {nobody} \(.*refused"):
            DashboardApi("berlin", [nobody], USER, lambda: PASSWORD, clock).get("summary")


def test_an_answer_that_never_ends_is_cut_off(
    fake: FakeDashboard, api: DashboardApi, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ceph_tuner.cluster.transport.LARGEST_ANSWER", 200_000)
    fake.pages["/api/summary"] = b" " * 300_000
    with pytest.raises(CommandFailed, match="more than 200000 bytes"):
        api.get("summary")

    def late(asked: Asked) -> None:
        # while it is being sent, time runs out
        clock.sleep(31.0 if asked.method == "GET" else 0.0)

    fake.before = late
    fake.pages["/api/summary"] = {}
    with pytest.raises(ClusterTimeout, match="did not answer within 30 s"):
        api.get("summary")


def test_an_answer_that_stops_midway_is_late_not_absent(clock: ManualClock) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        held: List[socket.socket] = []

        def half_an_answer() -> None:
            held.append(server.accept()[0])
            held[0].recv(1 << 16)
            held[0].sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{")

        thread = threading.Thread(target=half_an_answer)
        thread.start()
        with pytest.raises(ClusterTimeout, match=r"did not answer within 0\.5 s"):
            DashboardApi("berlin", [url], USER, lambda: PASSWORD, clock, timeout=0.5).get("summary")
        thread.join()
        held[0].close()


def test_a_certificate_is_trusted_by_ca_or_by_written_consent_alone(
    tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    signer, certificate = certificates(tmp_path)
    # as on machines with a proxy that re-signs: it must not outrank what fleet.yaml says
    monkeypatch.delenv("REQUESTS_CA_BUNDLE", raising=False)
    monkeypatch.delenv("CURL_CA_BUNDLE", raising=False)
    with serving(FakeDashboard(dict(PAGES)), certificate) as fake:

        def api(**trust: Any) -> DashboardApi:
            return DashboardApi("berlin", [fake.url], USER, lambda: PASSWORD, clock, **trust)

        with pytest.raises(PermissionRefused, match=r"a certificate of .* that cannot be trusted") as refusal:
            api().get("summary")
        assert "`verify: false`" in str(refusal.value)
        assert fake.asked == []
        assert api(ca=str(signer)).get("summary")
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", "/nowhere")
        assert api(verify=False).get("summary")
        assert api(ca=str(signer)).get("summary")


def test_netrc_and_cookies_play_no_part(
    fake: FakeDashboard, api: DashboardApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login somebody password else\n")
    monkeypatch.setenv("NETRC", str(netrc))
    api.get("summary")
    assert [asked.token for asked in fake.asked] == ["", "token-1"]
    assert not api._transport.session.cookies


@pytest.fixture
def dashboard(api: DashboardApi) -> Dashboard:
    return Dashboard(api)


def test_places_versions_and_health_come_as_from_ceph_itself(dashboard: Dashboard) -> None:
    assert osd_versions(dashboard) == ["20.2.4"]
    assert CommandConfig(dashboard).places() == [
        Place(0, "ssd", {"host": "h0", "root": "default"}, True),
        Place(1, "hdd", {"host": "h0", "root": "default"}, False),
    ]
    assert json.loads(dashboard.mon("status", {}))["fsid"].startswith("0d9b9c4e")
    assert set(json.loads(dashboard.mon("health", {}))["checks"]) == {"TUNER_SLO_MISSED", "OSDMAP_FLAGS"}


def test_what_is_asked_twice_is_fetched_once(fake: FakeDashboard, dashboard: Dashboard) -> None:
    CommandConfig(dashboard).places()
    CommandConfig(dashboard).osds("osd")
    assert [asked.path for asked in fake.asked].count("/api/health/full") == 1


def test_the_database_is_stated_by_sections(dashboard: Dashboard) -> None:
    assert dashboard.stated() == [
        StatedOption("osd", "osd_mclock_profile", "high_client_ops"),
        StatedOption("osd.0", "osd_mclock_max_capacity_iops_ssd", "811.700000"),
    ]


@pytest.mark.parametrize(
    ("ask", "why"),
    [
        (lambda port: CommandConfig(port).dump(), "without their masks"),
        (lambda port: CommandConfig(port).set("osd", "osd_max_scrubs", "1"), "no journal"),
        (lambda port: CommandConfig(port).remove("osd", "osd_max_scrubs"), "no journal"),
        (lambda port: CommandConfig(port).effective(0), "what an OSD's options are"),
        (lambda port: CommandConfig(port).sources(0), "what an OSD's options are"),
        (lambda port: CommandStore(port).get("slo"), "key-value store"),
        (lambda port: CommandStore(port).set("slo", "{}"), "key-value store"),
        (lambda port: CommandStore(port).keys("lock/"), "key-value store"),
        (lambda port: port.mon("osd out", {"ids": "0"}), "no such call"),
        (lambda port: port.tell("osd.0/../../x", "perf histogram dump", {}), "what an OSD's options are"),
    ],
)
def test_what_it_cannot_do_is_refused_with_the_way_out_and_without_a_call(
    fake: FakeDashboard, dashboard: Dashboard, ask: Callable[[Any], Any], why: str
) -> None:
    with pytest.raises(NotByRest, match=why) as refusal:
        ask(dashboard)
    assert "`ceph: {conf: …, keyring: …}`" in str(refusal.value)
    assert fake.asked == []


@pytest.mark.parametrize("page", [[], {}, {"osd_map": None}, {"health": {}}, {"osd_map": 7}])
def test_health_that_is_none_is_no_cluster(fake: FakeDashboard, dashboard: Dashboard, page: Any) -> None:
    fake.pages["/api/health/full"] = page
    with pytest.raises((TunerError, KeyError, TypeError)):
        CommandConfig(dashboard).places()


FULL = "/api/health/full"
MAP = PAGES[FULL]["osd_map"]
HEALTHY = {"health": {"status": "x", "checks": []}}


@pytest.mark.parametrize(
    ("prefix", "answer"),
    [
        *(
            (prefix, answer)
            for prefix in ("status", "osd tree", "osd metadata")
            for answer in ([], {"osd_map": 2}, {"osd_map": {}})
        ),
        ("health", {"health": {"checks": [1]}}),
        ("health", {"health": {"checks": [{}]}}),
        ("versions", {"osd_map": {**MAP, "osd_metadata": {"0": 1}}}),
        ("osd metadata", {"osd_map": {**MAP, "osd_metadata": {"a": {}}}}),
        ("osd metadata", {"osd_map": {**MAP, "osd_metadata": {"0": []}}}),
        ("osd tree", {"osd_map": {**MAP, "tree": {"nodes": [{"id": 1}]}}}),
        ("osd tree", {"osd_map": {**MAP, "tree": {"nodes": 5}}}),
        ("osd tree", {"osd_map": {**MAP, "tree": []}}),
    ],
)
def test_an_answer_of_another_shape_is_the_servers_fault(
    fake: FakeDashboard, api: DashboardApi, prefix: str, answer: Any
) -> None:
    fake.pages[FULL] = {**HEALTHY, **answer} if isinstance(answer, dict) else answer
    with pytest.raises(CommandFailed, match=r"cannot be read|answered a list") as refusal:
        Dashboard(api).mon(prefix, {})
    assert refusal.value.code == -errno.EIO


def test_a_list_of_options_of_another_shape_is_the_servers_fault(fake: FakeDashboard, api: DashboardApi) -> None:
    fake.pages["/api/cluster_conf"] = [1]
    with pytest.raises(CommandFailed, match=r"cluster_conf.*cannot be read"):
        Dashboard(api).stated()


@pytest.mark.parametrize(
    ("nodes", "sound"),
    [
        ([{"id": 0, "name": "osd.0", "type": "osd", "children": [0]}], True),
        ([{"id": -1, "name": "h", "type": "host", "children": [0, -1]}, {"id": 0, "name": "o", "type": "osd"}], True),
        ([{"id": 0, "name": "osd.0", "type": "osd", "children": [[]]}], False),
        ([{"id": 0, "name": "osd.0", "type": "osd", "children": 5}], False),
    ],
)
def test_a_tree_that_leads_back_to_where_it_began_ends(
    fake: FakeDashboard, api: DashboardApi, nodes: Any, sound: bool
) -> None:
    fake.pages[FULL] = {**HEALTHY, "osd_map": {**MAP, "tree": {"nodes": nodes}}}
    config = CommandConfig(Dashboard(api))
    if sound:
        assert [place.osd for place in config.places()] == [0]
    else:
        with pytest.raises(CommandFailed, match="cannot be read"):
            config.places()


@pytest.mark.parametrize("version", ["", "ceph", "ceph version"])
def test_a_version_that_is_none_is_the_servers_fault(fake: FakeDashboard, api: DashboardApi, version: str) -> None:
    fake.pages["/api/summary"] = {"version": version}
    fake.pages[FULL] = {**HEALTHY, "osd_map": {**MAP, "osd_metadata": {}}}
    with pytest.raises(CommandFailed, match="cannot be read"):
        osd_versions(Dashboard(api))


def test_a_cluster_in_which_no_daemon_runs_has_no_version() -> None:
    class Answers:
        def mon(self, prefix: str, arguments: Mapping[str, Any]) -> str:
            return json.dumps({"mon": {}, "osd": {}})

    with pytest.raises(CommandFailed, match=r"cannot be read.*no daemon"):
        osd_versions(cast(Any, Answers()))
