"""Fleets as YAML files (docs/fleet.md).

schema: 1
clusters:
  paris:
    ceph: {conf: /etc/ceph/paris.conf, keyring: /etc/ceph/paris.keyring, name: client.tuner}
    labels: {site: eu, tier: gold}
  oslo:
    prefix_command: kubectl exec deploy/rook-ceph-tools --   # what stands before `ceph` where it is run
    prefix_shells: 0                    # how many shells parse the arguments on that way; known of kubectl and ssh
    rook: {cephcluster: rook-ceph/rook-ceph, kubeconfig: oslo.kubeconfig, context: oslo}   # where Rook manages it
  berlin:
    dashboard:
      url: https://berlin-1:8443          # or a list: one for each mgr
      ca: /etc/ssl/berlin.pem
      username: tuner
      password: {env: BERLIN_PASSWORD}    # or {file: PATH} or {keyring: SERVICE}
    prometheus:                           # its past, where a server scrapes it
      url: https://metrics:9090
      selector: {cluster: berlin}         # labels that tell its series from others'
      token: {file: /etc/tuner/token}     # or username and password
    description: berlin-cluster.yaml      # what its twin is made of; else from what the cluster tells
    slo: berlin-slo.yaml                  # else what the cluster keeps
trust:                                    # whose signature a profile needs; without it: nobody's
  keys:
    ops: {key: ops.pub, clusters: [paris], until: "2027-06-30"}
  revoked: ["sha256:…"]                   # digests of profiles, or keys in base64
"""

from __future__ import annotations

import re
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Mapping, Tuple, Union
from urllib.parse import urlsplit

from ceph_tuner.cluster.prefix_command import PrefixCommand
from ceph_tuner.cluster.promql import LABEL
from ceph_tuner.core.changes.custom_resource import CustomResource
from ceph_tuner.core.errors import InputError
from ceph_tuner.core.profiles.profile import NAME, NAME_RULE
from ceph_tuner.files import schema, yaml_document
from ceph_tuner.fleet.contract import Access, ByCeph, ByDashboard, ByLab, ByPrefix, Fleet, Member, PrometheusServer
from ceph_tuner.fleet.secret import ORIGINS, Secret
from ceph_tuner.fleet.trust import Signer, Trust
from ceph_tuner.rook.management import NONE, RookChoice

SCHEMA_VERSION = 1

_TEXT = {"type": "string"}
_ENTITY = re.compile(r"client\.[A-Za-z0-9_.:-]+\Z")


FLEET = schema.of_file(
    "fleet",
    {
        "schema": {"type": "integer"},
        "clusters": {"type": "object"},
        "trust": schema.mapping({"keys": {"type": "object"}, "revoked": {"type": "array", "items": _TEXT}}, "keys"),
    },
    "schema",
    "clusters",
)
_SIGNER = schema.mapping({"key": _TEXT, "clusters": {"type": "array", "items": _TEXT}, "until": _TEXT}, "key")
_URL = {"url": _TEXT, "ca": _TEXT, "verify": {"type": "boolean"}, "username": _TEXT}
_SECRET = schema.mapping(dict.fromkeys(ORIGINS, _TEXT))
_MEMBER = schema.mapping(
    {
        "ceph": schema.mapping({"conf": _TEXT, "keyring": _TEXT, "name": _TEXT}, "conf"),
        "lab": _TEXT,
        "prefix_command": _TEXT,
        "prefix_shells": {"type": "integer"},
        "dashboard": schema.mapping(
            {**_URL, "url": {"type": ["string", "array"], "items": _TEXT}, "password": _SECRET},
            "url",
            "username",
            "password",
        ),
        "rook": schema.mapping({"cephcluster": _TEXT, "kubeconfig": _TEXT, "context": _TEXT}, "cephcluster"),
        "labels": {"type": "object", "additionalProperties": _TEXT},
        "prometheus": schema.mapping(
            {
                **_URL,
                "password": _SECRET,
                "token": _SECRET,
                "selector": {"type": "object", "additionalProperties": _TEXT},
            },
            "url",
        ),
        "description": _TEXT,
        "slo": _TEXT,
    }
)
_WAYS = ("ceph", "prefix_command", "dashboard", "lab")
_SECRETS = (("dashboard", "password"), ("prometheus", "password"), ("prometheus", "token"))


def read(path: Union[str, Path]) -> Fleet:
    """Read and check a fleet. Raises InputError with the file, the line and the key."""
    return _from(yaml_document.load(path), Path(path).parent)


def from_text(text: str, name: str = "fleet.yaml") -> Fleet:
    """Read a fleet from the text of the named file."""
    return _from(yaml_document.parse(text, name), Path(name).parent)


def _from(document: yaml_document.YamlDocument, directory: Path) -> Fleet:
    _refuse_written_passwords(document)
    schema.check(document, FLEET, SCHEMA_VERSION)
    clusters = document.data["clusters"]
    if not clusters:
        raise InputError(document.place("clusters"), "no cluster", "at least one")
    # their names are the operator's, so they are no part of a schema whose every fault names known keys
    each = {
        **FLEET,
        "properties": {**FLEET["properties"], "clusters": schema.mapping(dict.fromkeys(clusters, _MEMBER))},
    }
    schema.check(document, each)
    members = tuple(_MemberReader(document, directory, name).member() for name in clusters)
    return Fleet(members, document.name, _trust(document, directory) if "trust" in document.data else None)


def _trust(document: yaml_document.YamlDocument, directory: Path) -> Trust:
    data = document.data["trust"]
    signers = schema.mapping({"keys": schema.mapping(dict.fromkeys(data["keys"], _SIGNER)), "revoked": {}})
    schema.check(document, {**FLEET, "properties": {**FLEET["properties"], "trust": signers}})
    return Trust(
        tuple(
            Signer(
                name,
                str(directory / Path(entry["key"]).expanduser()),
                frozenset(entry.get("clusters", ())),
                _day(entry["until"], document.place("trust", "keys", name, "until")) if "until" in entry else None,
            )
            for name, entry in data["keys"].items()
        ),
        frozenset(data.get("revoked", ())),
        document.place("trust"),
    )


def _day(text: str, place: str) -> float:
    try:
        return datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=timezone.utc).timestamp()
    except ValueError:
        raise InputError(place, repr(text[:40]), 'a day such as "2027-06-30"') from None


def _refuse_written_passwords(document: yaml_document.YamlDocument) -> None:
    """Before anything that would show what it found."""
    clusters = document.data.get("clusters") if isinstance(document.data, dict) else None
    for name, member in clusters.items() if isinstance(clusters, dict) else ():
        for way, key in _SECRETS if isinstance(member, dict) else ():
            access = member.get(way)
            if access is not None and not isinstance(access, (dict, list)):
                raise InputError(
                    document.place("clusters", name, way), "a value that is not shown", "a mapping of keys to values"
                )
            origin = access.get(key, {}) if isinstance(access, dict) else {}
            # {PASSWORD} is a mapping as well
            if not isinstance(origin, dict) or not set(origin) <= set(ORIGINS):
                raise InputError(
                    document.place("clusters", name, way, key),
                    f"a {key} in the file",
                    "where it is kept: {env: VARIABLE}, {file: PATH} or {keyring: SERVICE}",
                )


class _MemberReader:
    """Reads one cluster; every fault is told with its place."""

    def __init__(self, document: yaml_document.YamlDocument, directory: Path, name: str) -> None:
        self._document, self._directory, self._name = document, directory, name
        self._data: Mapping[str, Any] = document.data["clusters"][name]

    def member(self) -> Member:
        """The whole."""
        if not NAME.fullmatch(self._name):
            raise InputError(self._place(), repr(self._name), f"a name of {NAME_RULE}")
        description, slo = (self._path(self._data[key]) if key in self._data else "" for key in ("description", "slo"))
        return Member(
            self._name,
            self._access(),
            dict(self._data.get("labels", {})),
            self._prometheus() if "prometheus" in self._data else None,
            description,
            slo,
            self._rook() if "rook" in self._data else RookChoice(),
        )

    def _rook(self) -> RookChoice:
        data, place = self._data["rook"], self._place("rook", "cephcluster")
        if "dashboard" in self._data:
            raise InputError(self._place("rook"), "`dashboard` beside it, by which nothing is written", "another way")
        if data["cephcluster"] != NONE:
            CustomResource.parse(data["cephcluster"], place)
        kubeconfig = self._path(data["kubeconfig"]) if "kubeconfig" in data else ""
        return RookChoice(data["cephcluster"], kubeconfig, data.get("context", ""), place)

    def _access(self) -> Access:
        ways = [way for way in _WAYS if way in self._data]
        if len(ways) != 1:
            raise InputError(self._place(), " and ".join(ways) or "no way to reach it", f"one of {', '.join(_WAYS)}")
        if "prefix_shells" in self._data and ways != ["prefix_command"]:
            raise InputError(self._place("prefix_shells"), f"`{ways[0]}` beside it", "`prefix_command`")
        if ways == ["prefix_command"]:
            place, shells = self._place("prefix_command"), self._data.get("prefix_shells")
            return ByPrefix(PrefixCommand.parse(self._data["prefix_command"], shells, place=place))
        if ways == ["lab"]:
            return ByLab(self._data["lab"])
        return self._ceph() if ways == ["ceph"] else self._dashboard()

    def _ceph(self) -> ByCeph:
        data = self._data["ceph"]
        name = data.get("name", "client.admin")
        if not _ENTITY.match(name):
            raise InputError(self._place("ceph", "name"), repr(name), "client.NAME")
        keyring = self._path(data["keyring"]) if "keyring" in data else ""
        if re.search(r"\s", keyring):
            # it is handed over in CEPH_ARGS, which knows no quotes
            raise InputError(self._place("ceph", "keyring"), "a path with a blank", "one without")
        return ByCeph(self._path(data["conf"]), keyring, name)

    def _dashboard(self) -> ByDashboard:
        data = self._data["dashboard"]
        ca, verify = self._trust("dashboard")
        addresses = [data["url"]] if isinstance(data["url"], str) else data["url"]
        if not addresses:
            raise InputError(self._place("dashboard", "url"), "no address", "at least one")
        urls = tuple(self._url("dashboard", text, verify) for text in addresses)
        return ByDashboard(urls, data["username"], self._secret("dashboard", "password"), ca, verify)

    def _prometheus(self) -> PrometheusServer:
        way, data = "prometheus", self._data["prometheus"]
        ca, verify = self._trust(way)
        credentials = [key for key in ("username", "password", "token") if key in data]
        if credentials not in ([], ["token"], ["username", "password"]):
            raise InputError(
                self._place(way, credentials[0]),
                " and ".join(credentials),
                "username and password, or token, or nothing",
            )
        secrets = {key: self._secret(way, key) for key in ("password", "token") if key in data}
        selector = dict(data.get("selector", {}))
        for label in selector:
            if not LABEL.match(label):
                raise InputError(self._place(way, "selector", label), repr(label), "a label's name")
        return PrometheusServer(
            self._url(way, data["url"], verify and bool(secrets)),
            selector,
            data.get("username", ""),
            secrets.get("password"),
            secrets.get("token"),
            ca,
            verify,
        )

    def _trust(self, way: str) -> Tuple[str, bool]:
        data = self._data[way]
        verify = bool(data.get("verify", True))
        if "ca" in data and not verify:
            raise InputError(self._place(way, "ca"), "both `ca` and `verify: false`", "one of them")
        return self._path(data["ca"]) if "ca" in data else "", verify

    def _url(self, way: str, text: str, secret: bool) -> str:
        """`secret`: something is sent there that the network must not see."""
        place = self._place(way, "url")
        try:
            parts = urlsplit(text)
            complete = parts.hostname and parts.port != 0
        except ValueError:
            complete = None
            parts = urlsplit("")
        if parts.username or parts.password or "@" in text:
            raise InputError(place, "an address with a user in it", "`username` and `password` beside it")
        bare = re.split("[?#]", text)[0]
        if not complete or parts.scheme not in ("https", "http") or bare != text:
            # what follows may be a token
            more = " with a query or a fragment" if bare != text else ""
            raise InputError(place, repr(bare)[:80] + more, "https://HOST:PORT")
        if parts.scheme == "http" and secret:
            raise InputError(place, "http, which shows the password to the network", "https, or `verify: false`")
        return text.rstrip("/")

    def _secret(self, way: str, key: str) -> Secret:
        data, keys = self._data[way], (way, key)
        if len(data[key]) != 1:
            origins = " and ".join(data[key]) or "nothing"
            raise InputError(self._place(*keys), origins, f"one of {', '.join(ORIGINS)}")
        ((origin, name),) = data[key].items()
        if not name:
            raise InputError(self._place(*keys, origin), "nothing", "a name")
        location = self._path(name) if origin == "file" else name
        return Secret(origin, location, data.get("username", ""), self._place(*keys))

    def _path(self, text: str) -> str:
        """Paths are meant from the file's own directory on."""
        return str(self._directory / Path(text).expanduser())

    def _place(self, *keys: object) -> str:
        return self._document.place("clusters", self._name, *keys)
