"""The interfaces to the outside. Everything behind them can be a real cluster or the twin.

`Commander` is the narrow waist: whoever can run Ceph's own commands (the ceph CLI, librados, a ceph-mgr
module) gets the configuration database, the store and the OSDs' view from `commands.py`.
"""

from __future__ import annotations

from typing import (
    Collection,
    Dict,
    Iterable,
    Iterator,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Protocol,
    Tuple,
    Union,
    runtime_checkable,
)

from ceph_tuner.core.errors import ClusterTimeout, CommandFailed

Told = Union[str, CommandFailed, ClusterTimeout]
"""What one of many daemons answered, or why it did not."""


class ConfigEntry(NamedTuple):
    """One row of `ceph config dump`: `who` is the section with its mask, as in `osd/host:h0`."""

    who: str
    name: str
    value: str


class Commander(Protocol):
    """Runs Ceph commands. The arguments' order is the commands' positional order."""

    def mon(self, prefix: str, arguments: Mapping[str, str], payload: str = "") -> str:
        """Answer of a monitor command, in JSON where it has that. Raises CommandFailed, ClusterTimeout."""

    def tell(self, daemon: str, prefix: str, arguments: Mapping[str, str]) -> str:
        """Answer of `ceph tell DAEMON …` (`osd.3`). Raises CommandFailed, ClusterTimeout."""


@runtime_checkable
class ManyCommander(Commander, Protocol):
    """A commander that has many commands under way at a time."""

    def tell_each(
        self,
        daemons: Iterable[str],
        prefix: str,
        arguments: Mapping[str, str],
        within: float,
        keep: Collection[str] = (),
    ) -> Iterator[Tuple[str, Told]]:
        """Answers of many daemons to one command, in the order in which they come; each has `within` seconds.

        Where `keep` names keys of the object that is answered, others may be left out where that saves the way.
        How many are under way is bounded, and so is what is held of their answers. Raises PermissionRefused, and
        ClusterTimeout where nobody can be asked any more.
        """


OsdOptions = Tuple[int, Union[Dict[str, str], CommandFailed, ClusterTimeout]]
"""An OSD's id and its options by name, or why it did not say them."""
OsdSources = Tuple[int, Union[Dict[str, Dict[str, str]], CommandFailed, ClusterTimeout]]
"""The same with the options that are not at their default: source -> value."""


class ConfigDatabase(Protocol):
    """The monitors' configuration database and what the OSDs make of it."""

    def dump(self) -> List[ConfigEntry]:
        """Every entry."""

    def set(self, who: str, name: str, value: str) -> None:
        """Raises CommandFailed where the monitor refuses the value, UnknownOption where no option has that name."""

    def set_unknown(self, who: str, name: str, value: str) -> None:
        """Write an entry for an option that the release does not have: the monitors keep it, and no daemon heeds it."""

    def remove(self, who: str, name: str) -> None:
        """Removing what is not there is no error."""

    def osds(self, who: str) -> List[int]:
        """Ids of the running OSDs that a target (`osd`, `osd/host:h0`, `osd.3`) covers."""

    def effective(self, osd: int) -> Dict[str, str]:
        """What one OSD says its options are, defaults included. Raises CommandFailed, ClusterTimeout."""

    def effective_on(self, osds: Iterable[int], names: Collection[str] = ()) -> Iterator[OsdOptions]:
        """Say the same of many OSDs, in any order: as they answer, and never all answers at a time.

        Of the options at least those that are named; all where none is.
        """


class Store(Protocol):
    """A small key-value store inside the cluster, shared by the CLI and the plugin (the module's own store)."""

    def get(self, key: str) -> Optional[str]:
        """None where the key is absent."""

    def set(self, key: str, value: str) -> None:
        """At most 64 KiB a value (the monitor's limit)."""

    def remove(self, key: str) -> None:
        """Removing what is not there is no error."""

    def keys(self, prefix: str) -> List[str]:
        """Sorted keys that begin with the prefix."""


@runtime_checkable
class WholeStore(Protocol):
    """A store that can answer with many values at once."""

    def items(self, prefix: str) -> Mapping[str, str]:
        """Keys that begin with the prefix, with their values."""


def contents(store: Store, prefix: str) -> Dict[str, str]:
    """Keys that begin with the prefix, with their values; by one command where the store can."""
    if isinstance(store, WholeStore):
        return dict(store.items(prefix))
    texts = {key: store.get(key) for key in store.keys(prefix)}
    return {key: text for key, text in texts.items() if text is not None}


class Clock(Protocol):
    """Time as an argument."""

    def now(self) -> float:
        """Seconds since the epoch. Somebody may set it, also back: not for how long something took."""

    def monotonic(self) -> float:
        """Seconds since some moment, which nobody sets: for how long something took, and time limits."""

    def sleep(self, seconds: float) -> None:
        """Returns after the given time, or raises what interrupts it."""
