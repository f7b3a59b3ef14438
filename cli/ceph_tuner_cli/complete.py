"""What the shell offers behind a word that is begun: names that are known here, without asking any cluster.

An empty list lets the shell offer files.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import List, Tuple

import typer

from ceph_lab.drives.presets import NAMES
from ceph_lab.state import lab_names
from ceph_tuner import shipped
from ceph_tuner.core.errors import TunerError
from ceph_tuner.core.knobs.catalogue import KNOBS, WORKS
from ceph_tuner.core.knobs.releases import RELEASES
from ceph_tuner_profiles import catalogue

Offered = List[Tuple[str, str]]
"""Values, each with a word about it, which zsh and fish show."""


def labs() -> Offered:
    """Labs of this machine."""
    # the folder may be for root alone
    with suppress(OSError):
        return [(name, "lab") for name in lab_names()]
    return []


def drives(incomplete: str) -> Offered:
    """What a lab's OSDs can stand on."""
    return [] if os.path.sep in incomplete else [(name, "drive") for name in NAMES]


def clusters(incomplete: str) -> Offered:
    """Labs, and the cluster that `ceph` reaches."""
    return [] if os.path.sep in incomplete else [*labs(), ("ceph", "what the ceph program reaches")]


def targets() -> Offered:
    """Ways to name OSDs."""
    return [
        ("osd", "all OSDs"),
        *((f"osd/class:{name}", f"all {name} OSDs") for name in ("hdd", "ssd", "nvme")),
        ("osd/host:", "OSDs of a host"),
        ("osd/rack:", "OSDs of a rack"),
        ("osd.", "one OSD"),
    ]


def profiles() -> Offered:
    """Profiles that come along."""
    return [(name, "comes with ceph-tuner") for name in catalogue.names()]


def examples() -> Offered:
    """Described clusters and objectives that come along."""
    with suppress(TunerError):
        return [(name, ", ".join(files)) for name, files in shipped.examples().items()]
    return []


def releases() -> Offered:
    """Ceph's releases."""
    return [(name, era.title) for name, era in RELEASES.items()]


def works() -> List[str]:
    """Kinds of work that knobs are about."""
    return list(WORKS)


def knobs() -> Offered:
    """Ceph's options that the tuner knows."""
    return [(name, knob.meaning) for name, knob in KNOBS.items()]


def knobs_to_set() -> Offered:
    """The same, to be given a value."""
    return [(f"{name}=", knob.meaning) for name, knob in KNOBS.items()]


def knobs_in_a_row(incomplete: str) -> Offered:
    """The same, with commas: the last one is completed."""
    before, comma, _ = incomplete.rpartition(",")
    names = before.split(",")
    return [(f"{before}{comma}{name}", knob.meaning) for name, knob in KNOBS.items() if name not in names]


def settings() -> Offered:
    """Profiles and single knobs."""
    return [*profiles(), *knobs_to_set()]


def members(context: typer.Context) -> Offered:
    """Clusters of the fleet that is named, or of the one that is here."""
    with suppress(TunerError, OSError):
        # jsonschema and YAML, which nothing else here needs
        from ceph_tuner.fleet import fleet_file

        fleet = fleet_file.read(str(context.params.get("fleet") or os.environ.get("CEPH_TUNER_FLEET", "fleet.yaml")))
        return [(member.name, " ".join(f"{k}={v}" for k, v in member.labels.items())) for member in fleet.members]
    return []


def labels(context: typer.Context) -> Offered:
    """Labels of the fleet's clusters."""
    return [(label, "") for label in dict.fromkeys(word for _, words in members(context) for word in words.split())]


def scenarios() -> Offered:
    """Combinations of loads of a lab."""
    from ceph_lab.scenarios import described  # the loads themselves come with it

    return [(entry.name, entry.meaning) for entry in described()]
