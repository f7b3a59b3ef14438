"""Fleets as YAML files (docs/fleet.md).

schema: 1
clusters:
  paris:
    ceph: {conf: /etc/ceph/paris.conf, keyring: /etc/ceph/paris.keyring, name: client.tuner}
    labels: {site: eu, tier: gold}
  berlin:
    dashboard:
      url: https://berlin-1:8443          # or a list: one for each mgr
      ca: /etc/ssl/berlin.pem
      username: tuner
      password: {env: BERLIN_PASSWORD}    # or {file: PATH} or {keyring: SERVICE}
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Dict, Mapping, Union
from urllib.parse import urlsplit

from ceph_tuner.errors import InputError
from ceph_tuner.files import schema, yaml_document
from ceph_tuner.fleet.contract import Access, ByCeph, ByDashboard, ByLab, Fleet, Member
from ceph_tuner.fleet.secret import ORIGINS, Secret
from ceph_tuner.profile import NAME, NAME_RULE

SCHEMA_VERSION = 1

_TEXT = {"type": "string"}
_ENTITY = re.compile(r"client\.[A-Za-z0-9_.:-]+\Z")


def _mapping(properties: Dict[str, Any], *required: str) -> Dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


FLEET: Dict[str, Any] = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "title": "ceph-tuner fleet",
    **_mapping({"schema": {"type": "integer"}, "clusters": {"type": "object"}}, "schema", "clusters"),
}
_MEMBER = _mapping(
    {
        "ceph": _mapping({"conf": _TEXT, "keyring": _TEXT, "name": _TEXT}, "conf"),
        "lab": _TEXT,
        "dashboard": _mapping(
            {
                "url": {"type": ["string", "array"], "items": _TEXT},
                "ca": _TEXT,
                "verify": {"type": "boolean"},
                "username": _TEXT,
                "password": _mapping(dict.fromkeys(ORIGINS, _TEXT)),
            },
            "url",
            "username",
            "password",
        ),
        "labels": {"type": "object", "additionalProperties": _TEXT},
    }
)


def read(path: Union[str, Path]) -> Fleet:
    """Read and check a fleet. Raises InputError with the file, the line and the key."""
    return _from(yaml_document.load(path), Path(path).parent)


def from_text(text: str, name: str = "fleet.yaml") -> Fleet:
    """Read a fleet from the text of the named file."""
    return _from(yaml_document.parse(text, name), Path(name).parent)


def _from(document: yaml_document.Document, directory: Path) -> Fleet:
    _refuse_written_passwords(document)
    schema.check(document, FLEET)
    if document.data["schema"] != SCHEMA_VERSION or isinstance(document.data["schema"], bool):
        raise InputError(document.place("schema"), repr(document.data["schema"]), f"{SCHEMA_VERSION}")
    clusters = document.data["clusters"]
    if not clusters:
        raise InputError(document.place("clusters"), "no cluster", "at least one")
    # their names are the operator's, so they are no part of a schema whose every fault names known keys
    each = {**FLEET, "properties": {**FLEET["properties"], "clusters": _mapping(dict.fromkeys(clusters, _MEMBER))}}
    schema.check(document, each)
    return Fleet(tuple(_Reader(document, directory, name).member() for name in clusters), document.name)


def _refuse_written_passwords(document: yaml_document.Document) -> None:
    """Before anything that would show what it found."""
    clusters = document.data.get("clusters") if isinstance(document.data, dict) else None
    for name, member in clusters.items() if isinstance(clusters, dict) else ():
        access = member.get("dashboard") if isinstance(member, dict) else None
        if isinstance(access, dict) and not isinstance(access.get("password", {}), dict):
            raise InputError(
                document.place("clusters", name, "dashboard", "password"),
                "a password in the file",
                "where it is kept: {env: VARIABLE}, {file: PATH} or {keyring: SERVICE}",
            )


class _Reader:
    """Reads one cluster; every fault is told with its place."""

    def __init__(self, document: yaml_document.Document, directory: Path, name: str) -> None:
        self._document, self._directory, self._name = document, directory, name
        self._data: Mapping[str, Any] = document.data["clusters"][name]

    def member(self) -> Member:
        """The whole."""
        if not NAME.fullmatch(self._name):
            raise InputError(self._place(), repr(self._name), f"a name of {NAME_RULE}")
        return Member(self._name, self._access(), dict(self._data.get("labels", {})))

    def _access(self) -> Access:
        ways = [way for way in ("ceph", "lab", "dashboard") if way in self._data]
        if len(ways) != 1:
            raise InputError(
                self._place(), " and ".join(ways) or "no way to reach it", "one of ceph, dashboard and lab"
            )
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
        verify = data.get("verify", True)
        if "ca" in data and not verify:
            raise InputError(self._place("dashboard", "ca"), "both `ca` and `verify: false`", "one of them")
        given = [data["url"]] if isinstance(data["url"], str) else data["url"]
        if not given:
            raise InputError(self._place("dashboard", "url"), "no address", "at least one")
        urls = tuple(self._url(text, verify) for text in given)
        ca = self._path(data["ca"]) if "ca" in data else ""
        return ByDashboard(urls, data["username"], self._secret(), ca, verify)

    def _url(self, text: str, verify: bool) -> str:
        place = self._place("dashboard", "url")
        try:
            parts = urlsplit(text)
            known = parts.hostname and parts.port != 0
        except ValueError:
            known = None
            parts = urlsplit("")
        if parts.username or parts.password or "@" in text:
            raise InputError(place, "an address with a user in it", "`username` and `password` beside it")
        if not known or parts.scheme not in ("https", "http") or parts.query or parts.fragment:
            raise InputError(place, repr(text)[:80], "https://HOST:PORT")
        if parts.scheme == "http" and verify:
            raise InputError(place, "http, which shows the password to the network", "https, or `verify: false`")
        return text.rstrip("/")

    def _secret(self) -> Secret:
        data, keys = self._data["dashboard"], ("dashboard", "password")
        if len(data["password"]) != 1:
            found = " and ".join(data["password"]) or "nothing"
            raise InputError(self._place(*keys), found, f"one of {', '.join(ORIGINS)}")
        ((origin, name),) = data["password"].items()
        if not name:
            raise InputError(self._place(*keys, origin), "nothing", "a name")
        return Secret(origin, self._path(name) if origin == "file" else name, data["username"], self._place(*keys))

    def _path(self, text: str) -> str:
        """Paths are meant from the file's own directory on."""
        return str(self._directory / Path(text).expanduser())

    def _place(self, *keys: object) -> str:
        return self._document.place("clusters", self._name, *keys)
