from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ceph_tuner.core.errors import InputError
from ceph_tuner.files import yaml_document
from ceph_tuner.fleet import fleet_file
from ceph_tuner.fleet.contract import ByCeph, ByDashboard, ByLab
from ceph_tuner.fleet.secret import Secret

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "fleet.yaml"
SECRET = "Tr0ub4dor-and-3"  # noqa: S105

GOOD = """\
schema: 1
clusters:
  paris:
    ceph: {conf: paris.conf, keyring: /k/paris.keyring, name: client.tuner}
    labels: {site: eu}
  berlin:
    dashboard:
      url: https://berlin:8443/
      ca: berlin.pem
      username: tuner
      password: {file: berlin.password}
    labels: {site: eu, tier: gold}
  lab:
    lab: lab
"""


def test_a_file_gives_its_clusters_in_order_with_paths_from_its_own_directory() -> None:
    fleet = fleet_file.from_text(GOOD, "/etc/fleet/fleet.yaml")
    paris, berlin, lab = fleet.members
    assert paris.access == ByCeph("/etc/fleet/paris.conf", "/k/paris.keyring", "client.tuner")
    assert isinstance(berlin.access, ByDashboard)
    assert (berlin.access.urls, berlin.access.ca) == (("https://berlin:8443",), "/etc/fleet/berlin.pem")
    assert berlin.access.verify
    assert berlin.access.password == Secret(
        "file",
        "/etc/fleet/berlin.password",
        "tuner",
        "/etc/fleet/fleet.yaml:11 clusters.berlin.dashboard.password",
    )
    assert lab.access == ByLab("lab")


def test_the_example_is_sound() -> None:
    members = fleet_file.read(EXAMPLE).members
    kinds = [member.access.kind for member in members]
    assert kinds == ["ceph", "prefix_command", "prefix_command", "dashboard", "lab"]
    assert [member.name for member in members if member.rook.text] == ["oslo"]


def test_the_example_has_each_key_that_a_cluster_may_have() -> None:
    clusters = yaml_document.load(EXAMPLE).data["clusters"]
    keys = {key for cluster in clusters.values() for key in cluster}
    assert keys == set(fleet_file._MEMBER["properties"])
    assert keys.issuperset(fleet_file._WAYS)
    for way in ("ceph", "rook", "prometheus", "dashboard"):
        given = {key for cluster in clusters.values() for key in cluster.get(way, {})}
        # one secret or none, and a certificate or its own word that there is none
        left_out = {"verify", "username", "password"} if way == "prometheus" else {"verify"}
        assert given == set(fleet_file._MEMBER["properties"][way]["properties"]) - left_out, way


def test_clusters_are_chosen_by_name_and_by_all_labels() -> None:
    fleet = fleet_file.from_text(GOOD)
    assert [member.name for member in fleet.chosen(labels=["site=eu"])] == ["paris", "berlin"]
    assert [member.name for member in fleet.chosen(labels=["site=eu", "tier=gold"])] == ["berlin"]
    assert [member.name for member in fleet.chosen(["lab", "paris"])] == ["paris", "lab"]
    with pytest.raises(InputError, match="one of paris, berlin, lab"):
        fleet.chosen(["rome"])
    with pytest.raises(InputError, match="labels that some cluster carries"):
        fleet.chosen(labels=["tier=lead"])
    with pytest.raises(InputError, match="KEY=VALUE"):
        fleet.chosen(labels=["gold"])


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("schema: 1", "schema: 2", "fleet.yaml:1 schema: found 2, expected 1"),
        ("lab: lab", "lab: 3", "fleet.yaml:14 clusters.lab.lab: found 3, expected text"),
        ("conf: paris.conf, ", "", "fleet.yaml:4 clusters.paris.ceph: found no key 'conf'"),
        ("username:", "user:", "fleet.yaml:10 clusters.berlin.dashboard.user: found unknown key 'user'"),
        ("  lab:\n    lab: lab\n", "  Lab:\n    lab: lab\n", "fleet.yaml:13 clusters.Lab: found 'Lab'"),
        ("lab: lab", "labels: {}", "found no way to reach it, expected one of ceph, prefix_command, dashboard, lab"),
        ("lab: lab", "prefix_command: mussh a", "of which is not known whether a shell over there parses"),
        ("lab: lab", "prefix_command: ssh -t a", "which asks for a terminal"),
        ("lab: lab", "{prefix_command: ssh a, prefix_shells: 9}", "found 9, expected 0 to 3"),
        ("lab: lab", "{lab: lab, prefix_shells: 1}", "found `lab` beside it, expected `prefix_command`"),
        ("lab: lab", "lab: lab\n    ceph: {conf: x}", "found ceph and lab"),
        ("site: eu}\n  berlin", "site: 5}\n  berlin", "fleet.yaml:5 clusters.paris.labels.site: found 5"),
        ("client.tuner", "osd.3", "fleet.yaml:4 clusters.paris.ceph.name: found 'osd.3', expected client.NAME"),
        ("/k/paris.keyring", "'/k/a b'", "a path with a blank"),
        ("https://", "http://", "fleet.yaml:8 clusters.berlin.dashboard.url: found http, which shows the password"),
        ("https://berlin:8443/", "berlin:8443", "expected https://HOST:PORT"),
        ("https://berlin:8443/", "https://berlin:port", "expected https://HOST:PORT"),
        ("https://berlin:8443/", "[]", "found no address"),
        ("{file: berlin.password}", "{}", "found nothing, expected one of env, file, keyring"),
        ("{file: berlin.password}", "{env: A, file: B}", "found env and file"),
        ("ca: berlin.pem", "ca: berlin.pem\n      verify: false", "both `ca` and `verify: false`"),
        (GOOD[GOOD.index("clusters:") :], "clusters: {}", "fleet.yaml:2 clusters: found no cluster"),
    ],
)
def test_a_fault_names_the_line_the_key_and_what_was_expected(old: str, new: str, words: str) -> None:
    assert old in GOOD
    with pytest.raises(InputError) as refusal:
        fleet_file.from_text(GOOD.replace(old, new, 1))
    assert words in str(refusal.value)


@pytest.mark.parametrize("written", [SECRET, f"[{SECRET}]", "123456789", f"{{{SECRET}}}", f"{{plain: {SECRET}}}"])
def test_a_password_in_the_file_is_refused_and_not_repeated(written: str) -> None:
    with pytest.raises(InputError, match="a password in the file") as refusal:
        fleet_file.from_text(GOOD.replace("{file: berlin.password}", written))
    assert written.strip("[{}]") not in str(refusal.value)


@pytest.mark.parametrize(
    ("written", "words"),
    [
        (f"dashboard: {SECRET}", "fleet.yaml:4 clusters.berlin.dashboard: found a value that is not shown"),
        ("dashboard: 123456789", "fleet.yaml:4 clusters.berlin.dashboard: found a value that is not shown"),
        (f"prometheus: {SECRET}", "fleet.yaml:4 clusters.berlin.prometheus: found a value that is not shown"),
        (f"dashboard: [{SECRET}]", "fleet.yaml:4 clusters.berlin.dashboard: found a list, expected a mapping"),
        ("dashboard:", "fleet.yaml:4 clusters.berlin.dashboard: found nothing, expected a mapping"),
        (f"dashboard: *{SECRET}", "fleet.yaml:4: found an alias"),
        (f"dashboard: {{password: *{SECRET}}}", "fleet.yaml:4: found an alias"),
        (f"dashboard: {{password: !{SECRET} }}", "fleet.yaml:4: found could not determine a constructor for the tag"),
        (f"dashboard: {{password: {SECRET}, password: x}}", "fleet.yaml:4: found a key twice (password)"),
    ],
)
def test_a_password_in_the_wrong_place_is_not_repeated_either(written: str, words: str) -> None:
    with pytest.raises(InputError) as refusal:
        fleet_file.from_text(f"schema: 1\nclusters:\n  berlin:\n    {written}\n")
    assert words in str(refusal.value)
    assert SECRET not in str(refusal.value)
    assert "123456789" not in str(refusal.value)


def test_a_user_in_an_address_is_refused_and_not_repeated() -> None:
    with pytest.raises(InputError, match="an address with a user in it") as refusal:
        fleet_file.from_text(GOOD.replace("https://", f"https://tuner:{SECRET}@"))
    assert SECRET not in str(refusal.value)


def test_http_goes_with_verification_written_off() -> None:
    text = GOOD.replace("https://berlin:8443/", "http://berlin:8443").replace("ca: berlin.pem", "verify: false")
    access = fleet_file.from_text(text).members[1].access
    assert isinstance(access, ByDashboard)
    assert not access.verify


@given(st.text(max_size=200))
def test_whatever_is_no_fleet_is_one_line(text: str) -> None:
    with pytest.raises(InputError) as refusal:
        fleet_file.from_text(f"schema: 1\nclusters: {text}")
    assert "\n" not in str(refusal.value)


PAST = """\
schema: 1
clusters:
  paris:
    lab: lab
    prometheus:
      url: https://metrics:9090/
      selector: {cluster: paris}
      token: {env: METRICS_TOKEN}
    description: paris-cluster.yaml
    slo: paris-slo.yaml
"""


def test_a_cluster_names_its_past_its_description_and_its_slo() -> None:
    (paris,) = fleet_file.from_text(PAST, "/etc/fleet/fleet.yaml").members
    assert paris.prometheus is not None
    assert (paris.prometheus.url, paris.prometheus.selector) == ("https://metrics:9090", {"cluster": "paris"})
    assert paris.prometheus.token is not None
    assert paris.prometheus.token.name == "METRICS_TOKEN"
    assert (paris.description, paris.slo) == ("/etc/fleet/paris-cluster.yaml", "/etc/fleet/paris-slo.yaml")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("token: {env: METRICS_TOKEN}", f"token: {SECRET}", "a token in the file"),
        ("token: {env: METRICS_TOKEN}", f"password: {SECRET}", "a password in the file"),
        ("token: {env: METRICS_TOKEN}", "password: {env: P}", "username and password, or token"),
        ("token: {env: METRICS_TOKEN}", "username: me", "username and password, or token"),
        ("https://", "http://", "http, which shows the password"),
        ("cluster: paris}", "'a b': paris}", "a label's name"),
        ("https://", "https://me@", "an address with a user in it"),
        (
            ":9090/",
            f":9090/?token={SECRET}",
            "'https://metrics:9090/' with a query or a fragment, expected https://HOST",
        ),
        (":9090/", f":9090/#{SECRET}", "'https://metrics:9090/' with a query or a fragment, expected https://HOST"),
    ],
)
def test_a_fault_about_the_past_names_what_was_expected(old: str, new: str, words: str) -> None:
    with pytest.raises(InputError) as caught:
        fleet_file.from_text(PAST.replace(old, new))
    assert words in str(caught.value)
    assert SECRET not in str(caught.value)


def test_a_past_that_asks_for_no_secret_may_be_fetched_over_http() -> None:
    text = PAST.replace("https://", "http://").replace("      token: {env: METRICS_TOKEN}\n", "")
    (paris,) = fleet_file.from_text(text).members
    assert paris.prometheus is not None
    assert paris.prometheus.url == "http://metrics:9090"
