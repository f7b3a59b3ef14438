"""The configuration database, the OSDs' view and the store, over anything that runs Ceph commands.

Runs inside ceph-mgr as well: standard library only.
"""

from __future__ import annotations

import errno
from contextlib import contextmanager
from functools import partial
from typing import Any, Callable, Collection, Dict, Iterable, Iterator, List, Mapping, Optional, Tuple, TypeVar, Union

from ceph_tuner.core.bounded import ANSWER, MISREAD, read_json
from ceph_tuner.core.ceph.ports import Commander, ConfigEntry, OsdOptions, OsdSources
from ceph_tuner.core.ceph.target import Place, covered
from ceph_tuner.core.ceph.tell_each import outcome, tell_each
from ceph_tuner.core.errors import ClusterTimeout, CommandFailed, Malformed, PermissionRefused, UnknownOption

STORE_PREFIX = "mgr/tuner/"
"""The config-key prefix of the plugin's own `set_store`, so that the CLI and the plugin share what is stored."""

SOURCES = ("mon", "file", "env", "cmdline", "override")
"""Where an option's value can come from, as `config diff` names them; the later outranks the earlier."""

OSD_ANSWER_S = 10.0
"""How long each of many OSDs has to say its options, which it has in memory."""

T = TypeVar("T")


class CommandConfig:
    """`ports.ConfigDatabase` by Ceph's commands."""

    def __init__(self, commander: Commander) -> None:
        self._commander = commander

    def dump(self) -> List[ConfigEntry]:
        """Every entry, in the monitors' order."""
        rows = parsed(self._commander.mon("config dump", {}), "config dump")
        return [ConfigEntry(_who(row), str(row["name"]), str(row["value"])) for row in rows]

    def set(self, who: str, name: str, value: str) -> None:
        """Write one entry; the monitor answers after the commit.

        Raises CommandFailed for a value out of range, UnknownOption (ConfigMonitor.cc, `prepare_command`).
        """
        try:
            self._commander.mon("config set", {"who": who, "name": name, "value": value})
        except CommandFailed as refusal:
            if refusal.code == -errno.EINVAL and "unrecognized config option" in refusal.message:
                raise UnknownOption(refusal.command, refusal.code, refusal.message) from refusal
            raise

    def set_unknown(self, who: str, name: str, value: str) -> None:
        """Write one entry that the release has no option for; the monitor asks nothing then."""
        self._commander.mon("config set", {"who": who, "name": name, "value": value, "force": "--force"})

    def remove(self, who: str, name: str) -> None:
        """Remove one entry; the monitor does not mind if there is none."""
        self._commander.mon("config rm", {"who": who, "name": name})

    def places(self) -> List[Place]:
        """Every OSD of the CRUSH tree with its device class and its location, as masks are matched against it."""
        with shaped("osd tree"):
            nodes = {node["id"]: node for node in parsed(self._commander.mon("osd tree", {}), "osd tree")["nodes"]}
            # an item of several buckets is listed under each; the monitors go by the first of them, -1 before -2
            parent = {child: nodes[above] for above in sorted(nodes) for child in nodes[above].get("children", [])}
            return [_place(node, parent) for node in nodes.values() if node["type"] == "osd"]

    def versions(self) -> List[str]:
        """The versions that the OSDs run, such as `20.2.4`; the monitors' where no OSD runs."""
        return osd_versions(self._commander)

    def osds(self, who: str) -> List[int]:
        """Sorted ids of the running OSDs that a section covers."""
        return covered(who, self.places())

    def effective(self, osd: int) -> Dict[str, str]:
        """What one OSD uses, defaults included (`ceph tell osd.N config show`)."""
        return _shown_options(self._commander.tell(f"osd.{osd}", "config show", {}))

    def effective_on(self, osds: Iterable[int], names: Collection[str] = ()) -> Iterator[OsdOptions]:
        """Say the same of many OSDs, as they answer; at least those options that are named."""
        return self.each(osds, "config show", _shown_options, names)

    def sources(self, osd: int) -> Dict[str, Dict[str, str]]:
        """Of options that are not at their default: source -> value, as the OSD itself sees it (`config diff`).

        `mon` is the monitors' database; what outranks it is `file`, `env`, `cmdline` and `override`.
        """
        return _sources(self._commander.tell(f"osd.{osd}", "config diff", {}))

    def sources_on(self, osds: Iterable[int]) -> Iterator[OsdSources]:
        """Say the same of many OSDs, as they answer."""
        return self.each(osds, "config diff", _sources)

    def each(
        self, osds: Iterable[int], prefix: str, read: Callable[[str], T], names: Collection[str] = ()
    ) -> Iterator[Tuple[int, Union[T, CommandFailed, ClusterTimeout]]]:
        """What `read` makes of the answers of many OSDs to one command, as they come, or why one did not answer.

        Each has OSD_ANSWER_S. Of an answer at least those keys are there that are named.
        """
        daemons = {f"osd.{osd}": osd for osd in osds}
        for daemon, answer in tell_each(self._commander, daemons, prefix, {}, OSD_ANSWER_S, names):
            yield daemons[daemon], outcome(partial(read, answer)) if isinstance(answer, str) else answer


class CommandStore:
    """`ports.Store` in the monitors' config-key store: every write is a commit, every read sees the last one."""

    def __init__(self, commander: Commander, prefix: str = STORE_PREFIX) -> None:
        self._commander, self._prefix = commander, prefix

    def get(self, key: str) -> Optional[str]:
        """None where the key is absent."""
        try:
            return self._commander.mon("config-key get", {"key": self._prefix + key})
        except CommandFailed as failure:
            if failure.code == -errno.ENOENT:
                return None
            raise

    def set(self, key: str, value: str) -> None:
        """At most 64 KiB a value: the monitor refuses more. An empty value is not a value for it, so use none."""
        self._commander.mon("config-key set", {"key": self._prefix + key}, payload=value)

    def remove(self, key: str) -> None:
        """The monitor does not mind if the key is absent."""
        self._commander.mon("config-key rm", {"key": self._prefix + key})

    def keys(self, prefix: str) -> List[str]:
        """Sorted keys that begin with the prefix."""
        return sorted(self.items(prefix))

    def items(self, prefix: str) -> Dict[str, str]:
        """Keys that begin with the prefix, with their values: one command."""
        # `config-key ls` would list every module's keys; dump takes a prefix
        answer = parsed(self._commander.mon("config-key dump", {"key": self._prefix + prefix}), "config-key dump")
        return {str(key)[len(self._prefix) :]: str(value) for key, value in answer.items()}


def answered(shown: str, code: int, output: str, message: str) -> str:
    """Output of a command that librados or the mgr sent. Raises CommandFailed, ClusterTimeout, PermissionRefused."""
    if code in (-errno.EACCES, -errno.EPERM):
        raise PermissionRefused(shown, message or output, "capabilities of the mgr that allow it")
    if code == -errno.ETIMEDOUT:
        raise ClusterTimeout(f"`{shown}` did not answer in time")
    if code < 0:
        raise CommandFailed(shown, code, message or output)
    return output


def osd_versions(commander: Commander) -> List[str]:
    """The versions that the cluster's OSDs run, such as `20.2.4`; the monitors' where no OSD runs: one at least."""
    with shaped("versions"):
        answer = parsed(commander.mon("versions", {}), "versions")
        # a monitor answers, so that there is one of them
        texts = answer.get("osd") or answer["mon"]
        versions = sorted(text.split()[2] for text in texts)
        if not versions:
            raise ValueError("no daemon")
        return versions


@contextmanager
def shaped(command: str) -> Iterator[None]:
    """What has another shape than Ceph gives it is nonsense of whoever answered: CommandFailed."""
    try:
        yield
    except MISREAD as error:
        words = f"answered what cannot be read ({type(error).__name__}: {error})"
        raise CommandFailed(command, -errno.EIO, words[:200]) from error


def _place(node: Dict[str, Any], parent: Mapping[Any, Dict[str, Any]]) -> Place:
    locations: Dict[str, str] = {}
    above = parent.get(node["id"])
    # each type once: a tree that leads back to where it began has no end
    while above is not None and above["type"] not in locations:
        locations[str(above["type"])] = str(above["name"])
        above = parent.get(above["id"])
    return Place(int(node["id"]), str(node.get("device_class", "")), locations, node.get("status") == "up")


def _shown_options(text: str) -> Dict[str, str]:
    with shaped("config show"):
        return {str(name): str(value) for name, value in parsed(text, "config show").items()}


def _sources(text: str) -> Dict[str, Dict[str, str]]:
    by_name: Dict[str, Dict[str, str]] = {}
    with shaped("config diff"):
        for name, levels in parsed(text, "config diff").get("diff", {}).items():
            if isinstance(levels, dict):
                texts = {source: _text(levels[source]) for source in SOURCES if source in levels}
                if texts:
                    by_name[str(name)] = texts
    return by_name


def _who(row: Dict[str, Any]) -> str:
    """The section with its mask, in the form that `config set` takes."""
    return f"{row['section']}/{row['mask']}" if row.get("mask") else str(row["section"])


def _text(value: Any) -> str:
    """As `config show` writes it: `config diff` answers with typed values."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def option_number(commander: Commander, who: str, name: str) -> float:
    """An option that is a number, as the monitors have it for that section. Raises TunerError."""
    with shaped("config get"):
        return float(parsed(commander.mon("config get", {"who": who, "key": name}), "config get"))


def parsed(text: str, command: str) -> Any:
    """Read a command's answer. Raises CommandFailed where it is no JSON."""
    try:
        return read_json(text, command, ANSWER)
    except Malformed as fault:
        words = f"answered {text[:80]!r} instead of JSON ({fault.found})"
        raise CommandFailed(command, -errno.EIO, words) from None
