"""Profiles as the commands take them: read by file or name, made of a cluster, brought to a cluster, compared."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any, Dict, Iterable, List, NamedTuple, Optional

from ceph_tuner.cluster.connection import Cluster
from ceph_tuner.core.knobs.catalogue import KNOBS
from ceph_tuner.core.knobs.releases import Release, Version, level_of, parse_version, release_of
from ceph_tuner.core.profiles.profile import Profile
from ceph_tuner.files import profile_file, yaml_document
from ceph_tuner.fleet import fleet_file, portable_file
from ceph_tuner.fleet.portable import Portable
from ceph_tuner_cli.render import say
from ceph_tuner_profiles import catalogue


class Vouched(NamedTuple):
    """A profile, and the file under a digest that it comes from, if it does."""

    profile: Profile
    portable: Optional[Portable] = None


def read(text: str, release: Optional[str] = None) -> Profile:
    """Read a file, or a profile that comes along (`balanced` alone where the release is known)."""
    if os.path.sep not in text and not text.endswith((".yaml", ".yml")) and not os.path.isfile(text):
        return catalogue.load(text, era_of(release))
    if text in catalogue.names():
        return catalogue.load(text)
    return profile_file.read(text)


def read_vouched(text: str, release: Optional[str] = None, fleet: Optional[Path] = None) -> Vouched:
    """Read a profile to be written to a cluster, as `read` does, or a file that `fleet export` wrote.

    Where the fleet file has a policy, a file is taken only in that form and as it says. Raises InputError.
    """
    trust = None if fleet is None else fleet_file.read(fleet).trust
    if not os.path.isfile(text) or text in catalogue.names():
        return Vouched(read(text, release))
    document = yaml_document.load(text)
    if trust is None and not (isinstance(document.data, dict) and "digest" in document.data):
        return Vouched(read(text, release))
    portable = portable_file.read(text)
    if trust is not None:
        trust.check(portable, text, time.time())
    return Vouched(portable.profile, portable)


def differences(one: Profile, other: Profile) -> List[Dict[str, Any]]:
    """Knobs in which two profiles differ, with both values; a default where a profile leaves it open."""
    rows = []
    for name, entry in KNOBS.items():
        if name not in one.settings and name not in other.settings:
            continue
        values = [each.settings.get(name, entry.default(each.release)) for each in (one, other)]
        if values[0] != values[1]:
            rows.append({"knob": name, "first": values[0], "second": values[1]})
    return rows


def profile_of_target(cluster: Cluster, target: str, name: str) -> Profile:
    """Make a profile of what a target's OSDs have, and say what it leaves out. Raises InputError."""
    answer = cluster.in_force(target, name)
    say(notes(answer.notes))
    return answer.profile


def level_for(profile: Profile, release: Optional[str]) -> Optional[Version]:
    """Give the patch level that `--release` names, or without it that of a profile."""
    if release is not None:
        return level_of(release, "--release")
    return parse_version(profile.version) if profile.version else None


def era_of(release: Optional[str]) -> Optional[Release]:
    """Give the release of `--release`."""
    return None if release is None else release_of(release, "--release")


def can_translate(profile: Profile, release: Release) -> bool:
    """IOPS per shard need the hardware, which a built-in profile has not."""
    return release.units == "fraction" or profile.hardware is not None or profile.built_in


def notes(texts: Iterable[str]) -> List[str]:
    """What a translation says beside its result."""
    return [f"note: {note}" for note in texts]
