"""What the book may do and when: each is an option of the mgr module with this default."""

from __future__ import annotations

from dataclasses import Field, dataclass, fields
from typing import Any, List

from ceph_tuner.core.autopilot.option_field import check_bounds, option_field
from ceph_tuner.core.book.choice import NONE, UNVALIDATED_USE
from ceph_tuner.core.errors import InputError
from ceph_tuner.core.hours import parse_hours


@dataclass(frozen=True)
class BookLimits:
    """Times in seconds."""

    switches: int = option_field(12, "Switches to a page of the book in an hour; going back is never counted", 1, 1000)
    dead_time: float = option_field(60.0, "Seconds between two switches to a page", 0.0, 3600.0)
    watch: float = option_field(300.0, "Seconds after a switch in which the guard watches it as a trial", 30.0, 86400.0)
    rest: float = option_field(
        3600.0,
        "Seconds for which a page is left out after the guard took it back or it could not be written",
        60.0,
        604800.0,
    )
    hours: str = option_field(
        "", "When pages of the book may be in force, as `mon-fri 22:00-06:00 Europe/Berlin`; empty: always"
    )
    unvalidated: str = option_field(
        NONE, "Pages without a trial on this cluster that are used: no, twin (those that the twin predicted), or all"
    )

    def __post_init__(self) -> None:
        """Raise InputError for what makes no sense, with the option's name."""
        parse_hours(self.hours, "book_hours")
        check_bounds(self, option_name)
        if self.unvalidated not in UNVALIDATED_USE:
            raise InputError("book_unvalidated", repr(self.unvalidated), f"one of {', '.join(UNVALIDATED_USE)}")


def option_name(item: Field[Any]) -> str:
    """Name of a field as an option of the module."""
    return f"book_{item.name}"


def options() -> List[Field[Any]]:
    """Every field; its metadata has `meaning`, and bounds as `low` and `high`."""
    return list(fields(BookLimits))
