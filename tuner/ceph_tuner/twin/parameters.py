"""What of a cluster's model is unknown: times and sizes inside the OSDs that no daemon reports.

A parameter is a number of the model under its path (`osd.kv_ios`). Its prior is log-normal around what the model says,
and its place x is in standard deviations of that prior, so that 0 is the prior's centre:

    value = centre x exp(spread x), kept within low and high
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Callable, Dict, List, Mapping, Sequence, Tuple

import numpy as np
from numpy.typing import NDArray

from ceph_tuner.core.errors import InputError
from ceph_tuner.twin.model import ClusterModel

Array = NDArray[Any]


def _always(model: ClusterModel) -> bool:
    return True


def _writes(model: ClusterModel) -> bool:
    return any(client.read_share < 1 for client in model.clients) or bool(model.recovery or model.snaptrim)


def _reads(model: ClusterModel) -> bool:
    return any(client.read_share > 0 for client in model.clients) or bool(model.recovery or model.scrub)


def _copies(model: ClusterModel) -> bool:
    return any(pool.size > 1 for pool in model.pools)


def _moves_bytes(model: ClusterModel) -> bool:
    return bool(model.recovery or model.scrub) or any(client.block_bytes > 65536 for client in model.clients)


def _scrubs(model: ClusterModel) -> bool:
    return bool(model.scrub)


def _trims(model: ClusterModel) -> bool:
    return bool(model.snaptrim or model.deletion)


def _clients(model: ClusterModel) -> bool:
    return bool(model.clients)


@dataclass(frozen=True)
class Parameter:
    """A number of the model that may be fitted. `spread` is the prior's standard deviation of its logarithm."""

    name: str
    unit: str
    meaning: str
    spread: float
    low: float
    high: float
    works_in: Callable[[ClusterModel], bool] = _always
    """Whether a model has work on which it bears."""
    typical: float = 0.0
    """The prior's centre where the model says 0, of which there is no logarithm."""

    def centre(self, model: ClusterModel) -> float:
        """What the model says, kept within the bounds."""
        return min(max(value_of(model, self.name) or self.typical, self.low), self.high)


PARAMETERS: Tuple[Parameter, ...] = (
    Parameter("osd.device.iops", "1/s", "requests that a drive serves", 0.3, 20, 2e6),
    Parameter("osd.device.bandwidth_bytes_s", "B/s", "bytes that a drive moves", 0.3, 1e6, 2e10),
    Parameter("osd.device.latency_s", "s", "latency of a write on the drive", 0.5, 5e-6, 5e-2, _writes),
    Parameter("osd.device.read_latency_s", "s", "latency of a read on the drive", 0.5, 5e-6, 5e-2, _reads),
    Parameter("osd.device.request_bytes", "B", "size into which requests are split", 0.5, 4096, 4194304, _moves_bytes),
    Parameter("osd.write_cpu_s", "s", "thread time of a write", 0.5, 5e-6, 5e-3, _writes),
    Parameter("osd.read_cpu_s", "s", "thread time of a read", 0.5, 5e-6, 5e-3, _reads),
    Parameter("osd.reply_cpu_s", "s", "thread time of a replica's answer", 0.5, 1e-6, 1e-3, _copies),
    Parameter(
        "osd.cpu_s_per_byte",
        "s/B",
        "thread time of a byte: copies and checksums",
        0.7,
        1e-11,
        1e-7,
        _moves_bytes,
        5e-10,
    ),
    Parameter("osd.scan_cpu_s", "s", "thread time of an object's look-up in a scrub", 0.7, 5e-6, 5e-2, _scrubs),
    Parameter("osd.trim_cpu_s", "s", "thread time of trimming a clone", 0.7, 5e-6, 5e-2, _trims),
    Parameter("osd.kv_ios", "1", "device writes of a key-value commit", 0.4, 0.25, 20, _writes),
    Parameter("osd.kv_bytes", "B", "bytes that a transaction adds to a commit", 0.5, 256, 262144, _writes),
    Parameter("osd.kv_latency_s", "s", "flush of a commit", 0.5, 1e-6, 5e-2, _writes),
    Parameter("osd.kv_cpu_s", "s", "commit thread's time of a transaction", 0.7, 1e-6, 5e-3, _writes, 2e-5),
    Parameter("osd.trim_kv_cpu_s", "s", "the same of a trimmed clone", 0.7, 1e-6, 5e-2, _trims, 5e-5),
    Parameter("osd.trim_ios", "1", "device writes of trimming a clone, each replica", 0.6, 0.05, 30, _trims, 0.5),
    Parameter("osd.trim_bytes", "B", "bytes of trimming a clone, each replica", 0.6, 256, 1048576, _trims),
    Parameter("clients.latency_s", "s", "what the clients' own side adds", 0.5, 1e-6, 5e-2, _clients, 2e-4),
    Parameter("network_s", "s", "one way between two daemons", 0.5, 1e-6, 5e-2),
)
"""What can be fitted, with priors that hold for any cluster whose drives were described to a third or so."""


def named(names: Sequence[str], place: str) -> Tuple[Parameter, ...]:
    """The parameters of these names. Raises InputError for one that is none."""
    by_name = {parameter.name: parameter for parameter in PARAMETERS}
    for name in names:
        if name not in by_name:
            raise InputError(place, repr(name), f"one of {', '.join(by_name)}")
    return tuple(by_name[name] for name in names)


def value_of(model: ClusterModel, name: str) -> float:
    """A parameter's value in a model; of clients, that of the first stream."""
    value: Any = model
    for part in name.split("."):
        if part == "clients":
            value = value.clients[0] if value.clients else None
        elif value is not None:
            value = getattr(value, part)
    return 0.0 if value is None else float(value)


def with_values(model: ClusterModel, values: Mapping[str, float]) -> ClusterModel:
    """The model with other values; streams of clients share theirs."""
    osd, device, clients = model.osd, model.osd.device, model.clients
    whole: Dict[str, Any] = {}
    for name, value in values.items():
        *path, last = name.split(".")
        change: Dict[str, Any] = {last: round(value) if last == "request_bytes" else float(value)}
        if path == ["osd", "device"]:
            device = replace(device, **change)
        elif path == ["osd"]:
            osd = replace(osd, **change)
        elif path == ["clients"]:
            clients = tuple(replace(client, **change) for client in clients)
        else:
            whole.update(change)
    return replace(model, osd=replace(osd, device=device), clients=clients, **whole)


class ParameterPrior:
    """Turns places into values. `x` has one number for each parameter, in the prior's standard deviations."""

    def __init__(self, parameters: Sequence[Parameter], models: Sequence[ClusterModel]) -> None:
        """Take the centres from the models; the first that has work on which a parameter bears counts."""
        self.parameters = tuple(parameters)
        chosen = [next((m for m in models if p.works_in(m)), models[0]) for p in self.parameters]
        self._centre = np.log([p.centre(model) for p, model in zip(self.parameters, chosen)])
        self._spread = np.asarray([p.spread for p in self.parameters])
        self.low = (np.log([p.low for p in self.parameters]) - self._centre) / self._spread
        self.high = (np.log([p.high for p in self.parameters]) - self._centre) / self._spread
        # three standard deviations are a factor of 4 to 8: what lies beyond is another cluster
        self.low, self.high = np.maximum(self.low, -3.0), np.minimum(self.high, 3.0)

    @property
    def names(self) -> List[str]:
        """Names, in the order of x."""
        return [parameter.name for parameter in self.parameters]

    def inside(self, x: Array) -> Array:
        """The nearest place within the bounds."""
        return np.asarray(np.clip(x, self.low, self.high), dtype=float)

    def values(self, x: Array) -> Dict[str, float]:
        """The values at a place."""
        values = np.exp(self._centre + self._spread * self.inside(np.asarray(x)))
        return {parameter.name: float(value) for parameter, value in zip(self.parameters, values)}


def fittable(models: Sequence[ClusterModel], known: Sequence[str] = ()) -> Tuple[Parameter, ...]:
    """Parameters on which the work of any of the models bears, but for those that are known."""
    return tuple(p for p in PARAMETERS if p.name not in known and any(p.works_in(model) for model in models))
