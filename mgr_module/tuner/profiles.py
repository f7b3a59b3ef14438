"""Profiles inside the cluster: the release's own, and those that were imported."""

from __future__ import annotations

import json
from functools import partial
from typing import Any, Callable, Dict, List, Optional

from ceph_tuner.core.bounded import read_json
from ceph_tuner.core.ceph.ports import Store
from ceph_tuner.core.errors import InputError, Malformed
from ceph_tuner.core.knobs.releases import Release
from ceph_tuner.core.knobs.settings import dotted
from ceph_tuner.core.profiles.profile import Profile

PREFIX = "profile/"
MOST = 100
LARGEST = 60_000


class ProfileShelf:
    """Reads and keeps profiles."""

    def __init__(self, store: Store, release: Release) -> None:
        self._store, self._release = store, release

    def names(self) -> List[str]:
        """The release's own first, then imported ones."""
        return [*self._release.profiles, *(key[len(PREFIX) :] for key in self._store.keys(PREFIX))]

    def get(self, name: str) -> Profile:
        """One profile. Raises InputError where there is none of the name."""
        if name in self._release.profiles:
            return Profile.make(name, self._release, self._release.profiles[name], built_in=True)
        text = self._store.get(PREFIX + name) if "/" not in name else None
        if text is None:
            raise InputError("profile", repr(name), f"one of {', '.join(self.names())}")
        return Profile.from_dict(_document(text, f"the stored profile {name}"), partial(dotted, f"profile {name}"))

    def checked(self, text: str, name: Optional[str]) -> Profile:
        """Read a profile that comes as JSON, under its own name or another one. Keeps nothing yet."""
        document = _document(text, "profile import -i")
        if name:
            document = {**document, "name": name}
        profile = Profile.from_dict(document, partial(dotted, "profile"))
        if profile.name in self._release.profiles:
            raise InputError("profile import", f"the name {profile.name}, the release's own", "another one (--name)")
        return profile

    def put(self, profile: Profile) -> None:
        """Keep a profile, in place of one of the same name."""
        text = json.dumps(profile.to_dict())
        if len(text) > LARGEST:
            raise InputError("profile import", f"{len(text)} characters", f"at most {LARGEST}: less evidence")
        keys = self._store.keys(PREFIX)
        if PREFIX + profile.name not in keys and len(keys) >= MOST:
            raise InputError("profile import", f"{len(keys)} profiles in the cluster", f"at most {MOST}")
        self._store.set(PREFIX + profile.name, text)

    def elsewhere(self, in_force: Callable[[], Profile]) -> Optional[Dict[str, Any]]:
        """Imported profiles as the optimiser takes them, with the hardware here; None where there are none."""
        documents = [_read(self._store.get(key)) for key in self._store.keys(PREFIX)]
        profiles = [document for document in documents if document is not None]
        if not profiles:
            return None
        own = in_force()
        if own.hardware is None or own.osds is None:
            return None
        return {"profiles": profiles, "hardware": vars(own.hardware), "osds": own.osds}


def _read(text: Optional[str]) -> Optional[Dict[str, Any]]:
    """None for what is no document: the optimiser judges the rest."""
    try:
        return _document(text or "", "a stored profile")
    except InputError:
        return None


def _document(text: str, place: str) -> Dict[str, Any]:
    if not text.strip():
        raise InputError(place, "nothing", "a profile as JSON (`ceph-tuner profile` reads YAML)")
    try:
        document = read_json(text, place)
    except Malformed as fault:
        expected = "a profile as JSON (`ceph-tuner profile` reads YAML)"
        raise InputError(place, f"no JSON ({fault.found})", expected) from None
    if not isinstance(document, dict):
        raise InputError(place, type(document).__name__, "a profile as a JSON object")
    return document
