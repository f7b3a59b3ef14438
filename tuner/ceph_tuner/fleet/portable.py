"""Profiles that travel: a profile with its origin under a digest, and under a signature where somebody vouches for it.

    schema: 1
    origin: {cluster: paris, exported: 2026-11-21T19:00:00Z}
    profile: {…}
    digest: sha256:…                    over the canonical form of the three above
    signature: {key: …, ed25519: …}     over the same; both in base64

The canonical form is JSON with sorted keys and without blanks: comments, order and layout of the file do not count,
every value does.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, Optional, Union

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from ceph_tuner.core.bounded import read_file
from ceph_tuner.core.errors import InputError, PermissionRefused
from ceph_tuner.core.knobs.settings import Place, dotted
from ceph_tuner.core.profiles.profile import Profile

SCHEMA_VERSION = 1
_PURPOSE = b"ceph-tuner portable profile 1\n"
"""Signed along, so that a signature for anything else is none for this."""

Plain = Dict[str, Any]


@dataclass(frozen=True)
class Portable:
    """A profile that was read, and who vouches for it."""

    profile: Profile
    origin: Plain
    digest: str
    signed_by: str = ""
    """The signer's public key in base64; empty where nobody signed."""


def sealed(profile: Profile, origin: Plain, key: Optional[Ed25519PrivateKey] = None) -> Plain:
    """Give the document to write: `unsealed` is its inverse."""
    content: Plain = {"schema": SCHEMA_VERSION, "origin": dict(origin), "profile": profile.to_dict()}
    canonical = _canonical(content)
    document = {**content, "digest": _digest(canonical)}
    if key is not None:
        document["signature"] = {
            "key": public_text(key.public_key()),
            "ed25519": base64.b64encode(key.sign(_PURPOSE + canonical)).decode(),
        }
    return document


def unsealed(document: Plain, place: Place = dotted, signer_key: Optional[Ed25519PublicKey] = None) -> Portable:
    """Read a document whose structure is sound; checks bounds, digest and signature. Raises InputError.

    With `signer_key`, only what this key signed is taken.
    """
    if document["schema"] != SCHEMA_VERSION or isinstance(document["schema"], bool):
        raise InputError(place("schema"), repr(document["schema"]), f"{SCHEMA_VERSION}")
    profile = Profile.from_dict(document["profile"], lambda *keys: place("profile", *keys))
    try:
        canonical = _canonical({key: document[key] for key in ("schema", "origin", "profile")})
    except ValueError:
        raise InputError(place("profile"), "a number that is none", "finite numbers") from None
    if document["digest"] != _digest(canonical):
        raise InputError(
            place("digest"), "a digest of something else: the file was changed", "the file as it was exported"
        )
    signed_by = _signer(document.get("signature"), canonical, place)
    if signer_key is not None and signed_by != public_text(signer_key):
        signature = f"a signature by {signed_by}" if signed_by else "no signature"
        raise InputError(place("signature"), signature, f"one by {public_text(signer_key)}")
    return Portable(profile, dict(document["origin"]), document["digest"], signed_by)


def read_private_key(path: Union[str, Path]) -> Ed25519PrivateKey:
    """Read a key in PEM (`openssl genpkey -algorithm ed25519`). Raises InputError, PermissionRefused."""
    content = read_file(path, "a key in PEM", 1 << 16)
    if stat.S_IMODE(os.stat(path).st_mode) & 0o077:
        raise PermissionRefused(str(path), "a private key that others may read", f"`chmod 600 {path}`")
    try:
        key = serialization.load_pem_private_key(content, None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        raise InputError(str(path), "no private key of Ed25519 without a passphrase", "one in PEM")
    return key


def read_public_key(path: Union[str, Path]) -> Ed25519PublicKey:
    """Read a key in PEM (`openssl pkey -pubout`). Raises InputError."""
    try:
        key = serialization.load_pem_public_key(read_file(path, "a key in PEM", 1 << 16))
    except (ValueError, TypeError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PublicKey):
        raise InputError(str(path), "no public key of Ed25519", "one in PEM")
    return key


def public_text(key: Ed25519PublicKey) -> str:
    """The key as files and people name it."""
    return base64.b64encode(key.public_bytes_raw()).decode()


def _canonical(content: Plain) -> bytes:
    return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def _digest(canonical: bytes) -> str:
    return f"sha256:{hashlib.sha256(canonical).hexdigest()}"


def _signer(signature: Optional[Plain], canonical: bytes, place: Place) -> str:
    """Whose valid signature it is. Raises InputError for an invalid one, even where none is asked for."""
    if signature is None:
        return ""
    try:
        raw, value = (base64.b64decode(signature[name], validate=True) for name in ("key", "ed25519"))
        key = Ed25519PublicKey.from_public_bytes(raw)
        key.verify(value, _PURPOSE + canonical)
    except (binascii.Error, ValueError, InvalidSignature):
        raise InputError(place("signature"), "a signature that does not fit", "the file as it was signed") from None
    return public_text(key)
