"""Whose signature a profile needs, as fleet.yaml says, and that an old one does not come back over a newer one.

trust:
  keys:
    ops: {key: ops.pub, clusters: [paris, lyon], until: "2027-06-30"}
  revoked: ["sha256:…", "BASE64 of a key"]
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import FrozenSet, Optional, Tuple

from ceph_tuner.core.bounded import MISREAD, read_json
from ceph_tuner.core.ceph.ports import Store
from ceph_tuner.core.errors import InputError
from ceph_tuner.fleet.portable import Portable, public_text, read_public_key

PREFIX = "trust/"
"""Keys of the newest signed profile of each origin and signer that a cluster got."""

AHEAD_S = 86400.0
"""Clocks that are right differ by less: what is later than that was exported by a wrong one."""

_EXPORTED = "%Y-%m-%dT%H:%M:%SZ"


@dataclass(frozen=True)
class Signer:
    """A key that may vouch for profiles."""

    name: str
    key: str
    """File with the public key in PEM."""
    clusters: FrozenSet[str] = frozenset()
    """Whose profiles it vouches for; none: of all."""
    until: Optional[float] = None
    """Seconds since the epoch after which it vouches for nothing."""


@dataclass(frozen=True)
class Trust:
    """Whose profiles this fleet takes, as fleet.yaml says under `trust`."""

    signers: Tuple[Signer, ...]
    revoked: FrozenSet[str] = frozenset()
    """Keys in base64 and digests of profiles that are taken no more, whoever signed."""
    place: str = "fleet.yaml trust"

    def check(self, portable: Portable, file: str, now: float) -> None:
        """Raise InputError for a profile that the policy does not let in; `now` in seconds since the epoch."""
        for mark in (portable.signed_by, portable.digest):
            if mark in self.revoked:
                raise InputError(file, f"{mark}, which is revoked", f"another one ({self.place})")
        names = ", ".join(signer.name for signer in self.signers) or "nobody: it names no key"
        signature = f"a signature by {portable.signed_by}" if portable.signed_by else "no signature"
        signer = next((one for one in self.signers if self._is_by(one, portable)), None)
        if signer is None:
            raise InputError(file, signature, f"one by {names} ({self.place})")
        origin = str(portable.origin["cluster"])
        if signer.clusters and origin not in signer.clusters:
            raise InputError(
                file,
                f"a profile of {origin!r}, signed by {signer.name}",
                f"one of {', '.join(sorted(signer.clusters))}",
            )
        if signer.until is not None and now >= signer.until:
            end_date = datetime.fromtimestamp(signer.until, timezone.utc).strftime("%Y-%m-%d")
            raise InputError(file, f"the key {signer.name}, which held until {end_date}", f"a newer one ({self.place})")

    @staticmethod
    def _is_by(signer: Signer, portable: Portable) -> bool:
        return bool(portable.signed_by) and public_text(read_public_key(signer.key)) == portable.signed_by


def check_newest(store: Store, portable: Portable, now: float, older: bool = False) -> None:
    """Raise InputError where the cluster got a newer one of this origin and signer before, unless `older` is meant.

    Of one from the future as well, beside which every later one would be old. `now` in seconds since the epoch.
    """
    if not portable.signed_by:
        # who can write the file can write its date
        return
    latest = datetime.fromtimestamp(now + AHEAD_S, timezone.utc).replace(tzinfo=None)
    own, newest = exported(portable), _newest(store.get(_key(portable)))
    if own > latest and not older:
        raise InputError(
            f"profile {portable.profile.name}",
            f"a signed profile of {portable.origin['exported']}, which is in the future",
            "one that is exported by a right clock, or --older to take it on purpose",
        )
    if newest is not None and own < newest <= latest and not older:
        raise InputError(
            f"profile {portable.profile.name}",
            f"a signed profile of {portable.origin['exported']}, while the cluster got a newer one of the same origin",
            "that one, or --older to go back on purpose",
        )


def remember(store: Store, portable: Portable) -> None:
    """Keep when what the cluster just got was exported."""
    if portable.signed_by:
        document = {"exported": portable.origin["exported"], "digest": portable.digest}
        store.set(_key(portable), json.dumps(document, sort_keys=True))


def exported(portable: Portable) -> datetime:
    """When. Raises InputError where a signed profile does not say."""
    text = str(portable.origin["exported"])
    try:
        return datetime.strptime(text, _EXPORTED)
    except ValueError:
        raise InputError("origin.exported", repr(text[:40]), "a time such as 2026-11-21T19:00:00Z") from None


def _newest(text: Optional[str]) -> Optional[datetime]:
    """None for what is none: anybody may write there, and it must not stop every profile for ever."""
    if text is None:
        return None
    try:
        return datetime.strptime(str(read_json(text, PREFIX)["exported"]), _EXPORTED)
    except MISREAD:
        return None


def _key(portable: Portable) -> str:
    of = json.dumps([portable.signed_by, portable.origin["cluster"]])
    return PREFIX + hashlib.sha256(of.encode()).hexdigest()[:32]
