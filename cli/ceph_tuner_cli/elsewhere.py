"""Profiles of other clusters that a search may begin with: files, those kept in the cluster, and those that we ship."""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from pathlib import Path
from typing import List, Optional, Sequence

from ceph_tuner.core.bounded import read_json
from ceph_tuner.core.ceph.ports import Store
from ceph_tuner.core.errors import InputError
from ceph_tuner.core.profiles.profile import Profile
from ceph_tuner.files import profile_file
from ceph_tuner.search.transfer import Elsewhere, Judged
from ceph_tuner_profiles import catalogue

PREFIX = "profile/"
"""Where the plugin keeps imported profiles."""


def gathered(files: Sequence[Path], store: Optional[Store] = None) -> List[Profile]:
    """Read them, files first. Raises InputError for a file that is no profile; what is kept and broken is left out."""
    profiles = [profile_file.read(path) for path in files]
    if store is not None:
        for text in map(store.get, store.keys(PREFIX)):
            with suppress(ValueError, InputError):
                profiles.append(Profile.from_dict(read_json(text or "", PREFIX)))
    return profiles + catalogue.tuned()


def name_of(profiles: Sequence[Profile]) -> str:
    """Another name for other profiles; nothing for none."""
    if not profiles:
        return ""
    text = json.dumps([profile.to_dict() for profile in profiles], sort_keys=True)
    return f" {hashlib.sha256(text.encode()).hexdigest()[:12]}"


def said_of(elsewhere: Optional[Elsewhere]) -> List[str]:
    """Say what became of each; not of those that we ship and that nobody asked for, unless they are used."""
    judgements: Sequence[Judged] = () if elsewhere is None else elsewhere.judged
    catalogue_names = catalogue.names()
    return [
        f"Profile {entry.text}."
        for entry in judgements
        if entry.settings is not None or f"{catalogue.TUNED}/{entry.profile.name}" not in catalogue_names
    ]
