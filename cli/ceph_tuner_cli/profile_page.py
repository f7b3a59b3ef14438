"""How a profile is shown: the nine values by class, what they come to, then the other knobs."""

from __future__ import annotations

from typing import List

from ceph_tuner.core.knobs.catalogue import CLASSES, KNOBS, MCLOCK_NINE
from ceph_tuner.core.knobs.cost import allocation
from ceph_tuner.core.knobs.settings import shares
from ceph_tuner.core.profiles.profile import Profile
from ceph_tuner.core.profiles.translation import to_release_units
from ceph_tuner.report.words import shown
from ceph_tuner_cli.tables import Columns, columns


def page(profile: Profile) -> Columns:
    """The profile as people read it: the nine values by class, what they come to, then the other knobs."""
    headings, rates = ["class", "reservation", "weight", "limit"], None
    if profile.hardware is not None and all(name in profile.settings for name in MCLOCK_NINE):
        rates = allocation(
            to_release_units(profile.settings, profile.release, profile.hardware), profile.hardware, profile.release
        )
        headings += ["reserved per OSD", "at most per OSD"]
    rows = columns(*headings, title=_title(profile))
    if all(name in profile.settings for name in MCLOCK_NINE):
        for service_class, (reservation, weight, limit) in shares(profile.settings).items():
            # as in the list: the whole names do not fit 80 columns beside the rates
            row = [
                service_class.replace("background_", ""),
                f"{reservation:g}",
                str(weight),
                f"{limit:g}" if limit else "none",
            ]
            if rates is not None:
                rate = rates[service_class]
                row.append(_rate(rate.reserved_bytes_s, rate.reserved_iops))
                row.append("-" if rate.limit_bytes_s is None else _rate(rate.limit_bytes_s, rate.limit_iops or 0.0))
            rows.add_row(*row)
    others = [name for name in profile.settings if name not in MCLOCK_NINE]
    for name in others:
        rows.add_row(name, shown(KNOBS[name], profile.settings[name]))
    return rows


def nine_as_text(profile: Profile) -> List[str]:
    """Reservation-weight-limit, class by class; dashes where the profile leaves them open."""
    if not all(name in profile.settings for name in MCLOCK_NINE):
        return ["-"] * len(CLASSES)
    return [f"{reservation:g}-{weight}-{limit:g}" for reservation, weight, limit in shares(profile.settings).values()]


def _title(profile: Profile) -> str:
    parts = [profile.name, f"{profile.release.title}{f' ({profile.version})' if profile.version else ''}"]
    parts += [part for part in (profile.description, profile.workload) if part]
    return ", ".join(parts)


def _rate(bytes_s: float, iops: float) -> str:
    megabytes = bytes_s / 1e6
    return f"{megabytes:.{0 if megabytes >= 10 else 1}f} MB/s, {iops:.0f} IOPS"
