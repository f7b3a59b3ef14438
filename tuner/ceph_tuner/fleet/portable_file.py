"""Profiles that travel between clusters, as YAML files (docs/fleet-profiles.md)."""

from __future__ import annotations

from pathlib import Path
from typing import Optional, Union

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from ceph_tuner.core.atomic_write import write_text
from ceph_tuner.files import schema, yaml_document
from ceph_tuner.files.profile_file import plain_to_text
from ceph_tuner.fleet.portable import Plain, Portable, unsealed

_TEXT = {"type": "string"}


PORTABLE = schema.of_file(
    "portable profile",
    {
        "schema": {"type": "integer"},
        "origin": schema.mapping({"cluster": _TEXT, "exported": _TEXT}, "cluster", "exported"),
        "profile": schema.PROFILE,
        "digest": _TEXT,
        "signature": schema.mapping({"key": _TEXT, "ed25519": _TEXT}, "key", "ed25519"),
    },
    "schema",
    "origin",
    "profile",
    "digest",
)


def read(path: Union[str, Path], signer_key: Optional[Ed25519PublicKey] = None) -> Portable:
    """Read and check one. Raises InputError with the file, the line and the key."""
    return _from(yaml_document.load(path), signer_key)


def from_text(text: str, name: str, signer_key: Optional[Ed25519PublicKey] = None) -> Portable:
    """Read one from the text of the named file."""
    return _from(yaml_document.parse(text, name), signer_key)


def _from(document: yaml_document.YamlDocument, signer_key: Optional[Ed25519PublicKey]) -> Portable:
    schema.check(document, PORTABLE)
    return unsealed(document.data, document.place, signer_key)


def write(path: Union[str, Path], document: Plain, force: bool = False) -> None:
    """Write one, whole or not at all. Raises InputError where the file exists and `force` is not given."""
    write_text(path, plain_to_text(document), force)
