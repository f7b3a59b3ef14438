"""What makes a change without effect, or one that cannot be taken back: said before anything is written."""

from __future__ import annotations

from typing import Iterable, List, Mapping, Sequence

from ceph_tuner.deciding import profile_of, same, same_value, winner
from ceph_tuner.errors import InputError
from ceph_tuner.knobs import KNOBS, MCLOCK_NINE
from ceph_tuner.ports import ConfigEntry
from ceph_tuner.releases import Release
from ceph_tuner.settings import format_settings
from ceph_tuner.target import Place, Target

Sources = Mapping[str, Mapping[str, str]]
"""Of one OSD: option -> source (`mon`, `file`, …) -> value, for options that are not at their default."""

_SOURCES = {"file": "ceph.conf", "env": "environment", "cmdline": "command line", "override": "`ceph tell` or code"}


def refuse_outranked(
    after: Sequence[ConfigEntry],
    who: str,
    expected: Mapping[str, str],
    over: Sequence[Place],
    sources: Mapping[int, Sources],
) -> None:
    """What would make the write without effect is said before it, not found out after it."""
    for name, value in expected.items():
        for place in over:
            decides = winner(after, name, place)
            if decides is not None and decides.who != who and not same_value(decides.value, value):
                raise InputError(
                    f"{name} on osd.{place.osd}{'' if place.up else ', which is down'}",
                    f"an entry that would still decide: `{decides.who}` = {decides.value}",
                    f"{value}: choose a target that outranks it, or remove it (ceph config rm {decides.who} {name})",
                )
            local = {
                source: text for source, text in sources.get(place.osd, {}).get(name, {}).items() if source != "mon"
            }
            for source, text in local.items():
                if not same_value(text, value):
                    raise InputError(
                        f"{name} on osd.{place.osd}",
                        f"{text} from the OSD's own {_SOURCES.get(source, source)}, which outranks the monitors",
                        f"{value}: remove it there",
                    )


def refuse_asleep(current: Sequence[ConfigEntry], release: Release, over: Sequence[Place]) -> None:
    """Of the nine, what is set under a built-in profile wakes up as soon as that profile's entry is touched.

    Whether a scheduler goes by it before depends on what its OSD has seen, and nobody can ask it: such a change could
    not be taken back for sure.
    """
    if not any(entry.name in MCLOCK_NINE for entry in current):
        return
    for place in over:
        profile = profile_of(current, place) or release.default_profile
        if profile == "custom":
            continue
        own = format_settings(release.profiles[profile], release) if release.units == "fraction" else {}
        for name in MCLOCK_NINE:
            decides = winner(current, name, place)
            if decides is not None and not same(decides.value, own.get(name)):
                raise InputError(
                    f"{name} on osd.{place.osd}",
                    f"`{decides.who}` = {decides.value} under the built-in profile {profile}: to touch the profile "
                    "would wake it up, and taking back would not put it to sleep",
                    "values and profile that agree: `ceph-tuner doctor` says what to remove",
                )


def refuse_late(where: Target, wanted: Iterable[str]) -> None:
    """An OSD learns what stands under its device class only after it has read the options of its start."""
    for name in wanted:
        if where.device_class and KNOBS[name].change == "restart":
            raise InputError(
                name,
                f"`{where}`, while an OSD learns what stands under its device class only after it has read this option",
                "`osd`, a host, or the OSDs one by one",
            )


def unset_under_custom(current: Sequence[ConfigEntry], running: Sequence[Place]) -> List[str]:
    """A custom profile with holes cannot be restored to the letter: what such an OSD uses depends on its past."""
    found = []
    for place in running:
        unset = [name for name in MCLOCK_NINE if winner(current, name, place) is None]
        if unset and profile_of(current, place) == "custom":
            found.append(f"osd.{place.osd} is under custom without {unset[0]}: what it uses now is lost by any change")
    return found
