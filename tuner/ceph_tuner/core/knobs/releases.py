"""What differs between Ceph releases for mClock: units, cost model, built-in profiles, who is scheduled in which class.

A `Release` is an era with one behaviour: Quincy and Tentacle each have two, because mClock changed within them
(17.2.7 brought fractions and costs in bytes; 20.2.3 gave best effort a reservation).

Sources: `src/osd/scheduler/mClockScheduler.cc` of ceph/ceph at 06a093ea (Quincy up to 17.2.6) and 5a4ed80e (from
17.2.7), `src/common/options/osd.yaml.in`; Reef 18.2.7 and Tentacle 20.2.4 are asked themselves by
`tests/test_knobs_on_cluster.py`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Callable, Dict, Mapping, Optional, Tuple, Union

from ceph_tuner.core.errors import InputError

Value = Union[bool, int, float, str]
Settings = Dict[str, Value]
"""Knob name -> value in the knob's own unit."""

Version = Tuple[int, int, int]

CLASSES = ("client", "background_recovery", "background_best_effort")
"""mClock's classes with settings of their own, in Ceph's order. The fourth, immediate, bypasses the queue."""

MCLOCK_NINE = tuple(
    f"osd_mclock_scheduler_{service_class}_{part}" for service_class in CLASSES for part in ("res", "wgt", "lim")
)
"""The nine values of a custom profile, in the order to write them: all or none (unset, they fall to 0/1/0)."""

BUILT_IN_PROFILES = ("high_client_ops", "balanced", "high_recovery_ops")

_QUINCY_EARLY_NO_LIMIT = 999_999
"""IOPS per shard that Ceph writes for "no limit" up to 17.2.6."""


def nine(*shares: Tuple[float, int, float]) -> Settings:
    """Make settings from (reservation, weight, limit) of client, recovery and best effort."""
    return dict(zip(MCLOCK_NINE, (value for share in shares for value in share)))


@dataclass(frozen=True, eq=False)
class Release:
    """One era of Ceph. Compared by identity: there is one object each, in `RELEASES`."""

    name: str
    title: str
    first: Version
    last: Optional[Version]
    """The last version of the era; None where the newest one still belongs to it."""
    newest: Version
    """The version that answers stand for when only the era is known."""
    units: str
    """What reservation and limit are in: `fraction` of the OSD's capacity, or `iops` per shard."""
    cost_model: str
    """`bytes`: max(bytes, bandwidth / IOPS); `scaled`: round(per I/O + per byte x bytes), in ms (ssd) or s (hdd)."""
    profiles: Mapping[str, Settings]
    """The nine values of each built-in profile, always as fractions of the OSD's capacity, limit 0 = none.
    Where `units` is `iops`, `translate.to_release_units` makes IOPS per shard of them; limits there go up to 2.0."""
    default_profile: str
    service_classes: Mapping[str, str]
    """Kind of work -> the class that schedules it (`immediate` = not scheduled)."""
    clients_share_from: Optional[Version]
    """From when on all clients share one queue, and a client's share is the share of them all; None: each has its own.
    """
    default_queue: str = "mclock_scheduler"
    sets_nine: bool = True
    """Whether a built-in profile sets the nine options, so that an OSD shows what it goes by."""
    strict_bound_s: Mapping[str, float] = field(default_factory=dict)
    """Kind of drive -> how long the strict queue may hold mClock's own back; empty: as long as it is not empty."""
    verified: bool = True
    """Whether its rules were seen on a cluster. Nothing is written to one whose rules are not known."""

    def __post_init__(self) -> None:
        """Hold the data to its own laws."""
        for profile, settings in self.profiles.items():
            if tuple(settings) != MCLOCK_NINE:
                raise ValueError(
                    f"{self.name} {profile}: expected the nine values in their order, got {list(settings)}"
                )
        if self.units not in ("fraction", "iops") or self.cost_model not in ("bytes", "scaled"):
            raise ValueError(f"{self.name}: units {self.units}, cost model {self.cost_model}")

    def clients_share(self, version: Optional[Version] = None) -> bool:
        """Whether all clients share one queue at this patch level; without one at the era's newest."""
        return self.clients_share_from is not None and (version or self.newest) >= self.clients_share_from

    @property
    def no_limit(self) -> int:
        """The value of a limit that means none, in the release's own units."""
        return 0 if self.units == "fraction" else _QUINCY_EARLY_NO_LIMIT

    @property
    def versions(self) -> str:
        """The range as people write it: `17.2.0 to 17.2.6`, `20.2.3 on`."""
        first = format_version(self.first)
        return f"{first} on" if self.last is None else f"{first} to {format_version(self.last)}"

    def __reduce__(self) -> Tuple[Callable[[str], Release], Tuple[str]]:
        # in another process it is the one object of there
        return release_named, (self.name,)

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"<Release {self.name} {self.versions}>"


def format_version(version: Version) -> str:
    """(20, 2, 4) -> `20.2.4`."""
    return ".".join(str(part) for part in version)


_QUINCY_EARLY_CLASSES = {
    "client": "client",
    "replica write": "immediate",
    "recovery": "background_recovery",
    "backfill": "background_recovery",
    "erasure-code recovery read": "immediate",
    "erasure-code backfill read": "immediate",
    "scrub": "background_best_effort",
    "snaptrim": "background_best_effort",
    "pg deletion": "background_best_effort",
}
_CLASSES_FROM_17_2_7 = {**_QUINCY_EARLY_CLASSES, "backfill": "background_best_effort"}
# from 20.2.3 by the PG's recovery priority: degraded data as recovery, misplaced data as best effort
_CLASSES_FROM_20_2_3 = {
    **_CLASSES_FROM_17_2_7,
    "erasure-code recovery read": "background_recovery",
    "erasure-code backfill read": "background_best_effort",
}

_PROFILES_QUINCY_EARLY = {
    "high_client_ops": nine((0.5, 2, 0), (0.25, 1, 1.0), (0.25, 2, 0)),
    "balanced": nine((0.4, 1, 1.0), (0.4, 1, 1.5), (0.2, 2, 0)),
    "high_recovery_ops": nine((0.3, 1, 0.8), (0.6, 2, 2.0), (0, 2, 0)),
}
_PROFILES_FROM_17_2_7 = {
    "high_client_ops": nine((0.6, 2, 0), (0.4, 1, 0), (0, 1, 0.7)),
    "balanced": nine((0.5, 1, 0), (0.5, 1, 0), (0, 1, 0.9)),
    "high_recovery_ops": nine((0.3, 1, 0), (0.7, 2, 0), (0, 1, 0)),
}
_PROFILES_FROM_20_2_3 = {
    "high_client_ops": nine((0.6, 2, 0), (0.4, 1, 0), (0.05, 4, 0.7)),
    "balanced": nine((0.5, 1, 0), (0.5, 1, 0), (0.05, 2, 0.9)),
    "high_recovery_ops": nine((0.3, 1, 0), (0.7, 2, 0), (0.05, 2, 0)),
}

QUINCY_EARLY = Release(
    name="quincy-early",
    title="Quincy up to 17.2.6",
    first=(17, 2, 0),
    last=(17, 2, 6),
    newest=(17, 2, 6),
    units="iops",
    cost_model="scaled",
    profiles=_PROFILES_QUINCY_EARLY,
    default_profile="high_client_ops",
    service_classes=_QUINCY_EARLY_CLASSES,
    clients_share_from=None,
)
QUINCY = Release(
    name="quincy",
    title="Quincy from 17.2.7",
    first=(17, 2, 7),
    last=(17, 2, 99),
    newest=(17, 2, 9),
    units="fraction",
    cost_model="bytes",
    profiles=_PROFILES_FROM_17_2_7,
    default_profile="balanced",
    service_classes=_CLASSES_FROM_17_2_7,
    clients_share_from=(17, 2, 7),
)
REEF = Release(
    name="reef",
    title="Reef",
    first=(18, 2, 0),
    last=(18, 2, 99),
    newest=(18, 2, 8),
    units="fraction",
    cost_model="bytes",
    profiles=_PROFILES_FROM_17_2_7,
    default_profile="balanced",
    service_classes=_CLASSES_FROM_17_2_7,
    clients_share_from=(18, 2, 1),
)
SQUID = Release(
    name="squid",
    title="Squid",
    first=(19, 2, 0),
    last=(19, 2, 99),
    newest=(19, 2, 7),
    units="fraction",
    cost_model="bytes",
    profiles=_PROFILES_FROM_17_2_7,
    default_profile="balanced",
    service_classes=_CLASSES_FROM_17_2_7,
    clients_share_from=(19, 2, 0),
)
TENTACLE_EARLY = Release(
    name="tentacle-early",
    title="Tentacle up to 20.2.2",
    first=(20, 2, 0),
    last=(20, 2, 2),
    newest=(20, 2, 2),
    units="fraction",
    cost_model="bytes",
    profiles=_PROFILES_FROM_17_2_7,
    default_profile="balanced",
    service_classes=_CLASSES_FROM_17_2_7,
    clients_share_from=(20, 2, 0),
)
TENTACLE = Release(
    name="tentacle",
    title="Tentacle from 20.2.3",
    first=(20, 2, 3),
    last=None,
    newest=(20, 2, 4),
    units="fraction",
    cost_model="bytes",
    profiles=_PROFILES_FROM_20_2_3,
    default_profile="balanced",
    service_classes=_CLASSES_FROM_20_2_3,
    clients_share_from=(20, 2, 3),
)

RELEASES: Dict[str, Release] = {
    release.name: release for release in (QUINCY_EARLY, QUINCY, REEF, SQUID, TENTACLE_EARLY, TENTACLE)
}
"""Every supported release by its name, oldest first."""

UMBRELLA = replace(
    TENTACLE,
    name="umbrella",
    title="Umbrella (21.x)",
    first=(21, 0, 0),
    newest=(21, 1, 0),
    sets_nine=False,
    strict_bound_s={"ssd": 0.05, "hdd": 0.25},
    verified=False,
)
"""Not supported: looked at, and not written to. Read in Ceph's pull requests and never seen: built-in profiles no
longer set the nine options (PR 64978), and one item of mClock's own goes first once none went for `strict_bound_s`
(PR 71205; a constant on flash, `osd_mclock_max_starve_time_hdd` on disks). The rest is Tentacle's."""

SUPPORTED = ", ".join(f"{release.name} ({release.versions})" for release in RELEASES.values()).replace(".99", ".x")


def parse_version(text: str, place: str = "Ceph's version") -> Version:
    """Read the version in `20.2.4`, `18.2.7-1`, `ceph version 18.2.7 (…) reef (stable)`. Raises InputError."""
    match = re.search(r"(?<![\w.])v?(\d{1,6})\.(\d{1,6})\.(\d{1,6})(?!\d)", text)
    if match is None:
        raise InputError(place, repr(text[:100]), "a version such as 20.2.4")
    return int(match[1]), int(match[2]), int(match[3])


def release_of(version: str, place: str = "Ceph's version") -> Release:
    """Return the release of a version string, or of a release's name. Raises InputError where it is not supported.

    `19.2` is its newest patch level, as `squid` is.
    """
    text = version.strip()
    series = _series_of(text)
    if series is not None:
        return series
    try:
        number = parse_version(text, place)
    except InputError as error:
        raise InputError(place, error.found, f"a version such as 20.2.4 or 19.2, or one of {SUPPORTED}") from None
    for release in (*RELEASES.values(), UMBRELLA):
        if release.first <= number <= (release.last or (release.first[0], 99, 999)):
            return release
    raise InputError(place, repr(text), f"one of {SUPPORTED}")


def level_of(text: str, place: str = "Ceph's version") -> Optional[Version]:
    """Return the patch level that a version names; None for a release's name or `19.2`, which stand for its newest."""
    return None if _series_of(text.strip()) is not None else parse_version(text, place)


def _series_of(text: str) -> Optional[Release]:
    """Return the release that a name or two numbers stand for."""
    numbers = re.fullmatch(r"(\d{1,6})\.(\d{1,6})", text)
    if numbers is None:
        return RELEASES.get(text)
    of_series = [each for each in RELEASES.values() if each.newest[:2] == (int(numbers[1]), int(numbers[2]))]
    return of_series[-1] if of_series else None


def release_named(name: str, place: str = "release") -> Release:
    """Return the release of that name (`reef`). Raises InputError with the supported ones."""
    if name in RELEASES:
        return RELEASES[name]
    if name == UMBRELLA.name:
        return UMBRELLA
    raise InputError(place, repr(name), f"one of {', '.join(RELEASES)}")
