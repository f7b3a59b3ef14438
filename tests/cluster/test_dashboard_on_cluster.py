"""The REST API of real dashboards, of each release, held against what librados says of the same cluster."""

from __future__ import annotations

import json
import time
from typing import Callable, Iterator, List

import pytest

from ceph_lab.cluster import Lab
from ceph_tuner.cluster.connection import Cluster
from ceph_tuner.cluster.dashboard import Dashboard, NotByRest, StatedOption
from ceph_tuner.cluster.session import Session
from ceph_tuner.core.ceph.commands import CommandConfig, osd_versions
from ceph_tuner.core.ceph.ports import ConfigEntry
from ceph_tuner.core.errors import PermissionRefused
from ceph_tuner.core.knobs.releases import release_of
from ceph_tuner.core.measure.osd_documents import osd_latency
from ceph_tuner.core.measure.sample import READ, WRITE
from fake_dashboard import PASSWORD, USER
from lab_dashboard import ROLE, Served, ceph, dashboards

pytestmark = pytest.mark.long_on_reef

NAME = "osd_scrub_chunk_max"


@pytest.fixture(scope="module")
def served(any_lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with dashboards(any_lab, tmp_path_factory.mktemp("tls")) as found:
        yield found


@pytest.fixture(scope="module")
def session(any_lab: Lab) -> Iterator[Session]:
    with Session(any_lab.argv) as opened:
        yield opened


@pytest.fixture
def look(served: Served) -> Iterator[Callable[[], Dashboard]]:
    """A new look each time: a Dashboard keeps what it has seen."""
    made: List[Dashboard] = []

    def looking() -> Dashboard:
        made.append(Dashboard(served.api()))
        return made[-1]

    yield looking
    for dashboard in made:
        dashboard.close()


def test_it_sees_the_same_cluster_as_librados(look: Callable[[], Dashboard], session: Session) -> None:
    dashboard = look()
    assert osd_versions(dashboard) == osd_versions(session)
    assert CommandConfig(dashboard).places() == CommandConfig(session).places()
    fsid = json.loads(session.mon("status", {}))["fsid"]
    assert json.loads(dashboard.mon("status", {}))["fsid"] == fsid


def test_it_sees_the_database_but_not_the_masks(look: Callable[[], Dashboard], session: Session) -> None:
    config = CommandConfig(session)
    entries = {"osd": "7", "osd/class:ssd": "8", "osd/host:nowhere": "9", "osd.0": "10"}
    for who, value in entries.items():
        config.set(who, NAME, value)
    try:
        stated = look().stated()
        assert {entry for entry in stated if entry.name == NAME} == {
            StatedOption(who.split("/")[0], NAME, value) for who, value in entries.items()
        }
        options = {entry.name for entry in stated}
        known = [entry for entry in config.dump() if entry.name in options]
        assert sorted(stated) == sorted((entry.who.split("/")[0], entry.name, entry.value) for entry in known)
        # what a module keeps there is not listed; all that concerns OSDs is
        assert {entry.name for entry in config.dump() if entry.who.startswith("osd")} <= options
    finally:
        for who in entries:
            config.remove(who, NAME)


def test_an_osds_latencies_come_by_rest_too(look: Callable[[], Dashboard]) -> None:
    found = osd_latency(json.loads(look().tell("osd.0", "perf histogram dump", {})))
    assert set(found) == {READ, WRITE}


def test_nothing_is_written_and_the_reason_is_said(look: Callable[[], Dashboard], session: Session) -> None:
    def of_osds() -> List[ConfigEntry]:
        # a dashboard of Tentacle writes the token of whoever logs in into the database
        return [entry for entry in CommandConfig(session).dump() if not entry.name.startswith("mgr/dashboard/")]

    before = of_osds()
    dashboard = look()
    version = osd_versions(dashboard)[0]
    cluster = Cluster.of("lab", dashboard, release_of(version), version)
    applier = cluster.applier()
    with pytest.raises(NotByRest):
        applier.plan("osd", {NAME: 7})
    with pytest.raises(NotByRest, match="no journal"):
        cluster.config.set("osd", NAME, "7")
    with pytest.raises(NotByRest, match="key-value store"), cluster.lock():
        raise AssertionError("locked without a store")
    assert of_osds() == before


def test_a_token_that_the_dashboard_revokes_is_renewed(served: Served, any_lab: Lab) -> None:
    fetched = []

    def password() -> str:
        fetched.append(PASSWORD)
        return PASSWORD

    api = served.api(password)
    api.get("summary")
    # tokens are good for what the user was when they were made
    time.sleep(1.1)
    ceph(any_lab, "dashboard", "ac-user-set-password", USER, "-i", "-", "--force-password", payload=PASSWORD)
    assert api.get("summary")["version"]
    # once for each token; a dashboard that is just then being told may revoke two
    assert 2 <= len(fetched) <= 3
    api.close()


def test_a_wrong_password_and_a_certificate_without_its_signer_are_refused(served: Served) -> None:
    with pytest.raises(PermissionRefused, match="refuses tuner's password"):
        served.api(lambda: "wr0ng").get("summary")
    if "ca" in served.trust:
        with pytest.raises(PermissionRefused, match="cannot be trusted"):
            served._replace(trust={}).api().get("summary")


def test_of_two_mgrs_the_active_one_is_found_whichever_comes_first(served: Served) -> None:
    for order in (served.urls, served.urls[::-1]):
        api = served.api(urls=order)
        assert api.get("summary")["health_status"].startswith("HEALTH")
        api.close()


def test_a_role_without_the_configuration_is_told_which_one_it_needs(
    look: Callable[[], Dashboard], any_lab: Lab
) -> None:
    ceph(any_lab, "dashboard", "ac-user-set-roles", USER, "read-only")
    try:
        with pytest.raises(PermissionRefused, match="a role that reads `config-opt` and `osd`"):
            look().stated()

    finally:
        ceph(any_lab, "dashboard", "ac-user-set-roles", USER, ROLE)
