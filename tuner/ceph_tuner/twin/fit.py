"""A finished fit, as it is kept: parameters with what is known of them, the cluster, the discrepancy, the evidence."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from ceph_tuner.core.errors import InputError
from ceph_tuner.core.knobs.releases import Settings
from ceph_tuner.core.knobs.settings import Place, dotted
from ceph_tuner.twin import description
from ceph_tuner.twin.calibration import Calibration
from ceph_tuner.twin.discrepancy import Discrepancy
from ceph_tuner.twin.identifiability import Identifiability, identifiability
from ceph_tuner.twin.model import ClusterModel
from ceph_tuner.twin.parameters import Array, named, with_values

SCHEMA = 1

DETERMINED, TOGETHER, VAGUE, SILENT = "determined", "only with others", "vague", "not from these windows"

_Z_90 = 1.6449

_KEPT = (
    "schema", "what", "cluster", "scenarios", "settings", "parameters", "covariance", "discrepancy", "notes",
    "evidence",
)  # fmt: skip


@dataclass(frozen=True)
class FittedParameter:
    """A parameter: its likeliest value, and the standard deviations of its logarithm before and after."""

    name: str
    unit: str
    meaning: str
    value: float
    deviation: float
    described: float
    described_deviation: float
    verdict: str
    low: float
    """The fit's bound, as `high`."""
    high: float

    @property
    def interval(self) -> Tuple[float, float]:
        """90 % of the posterior."""
        factor = float(np.exp(_Z_90 * self.deviation))
        return max(self.value / factor, self.low), min(self.value * factor, self.high)


@dataclass(frozen=True)
class Fit:
    """What `ceph-tuner twin fit` found."""

    models: Mapping[str, ClusterModel]
    """By scenario, as described: before the parameters."""
    parameters: Tuple[FittedParameter, ...]
    covariance: Array
    """Of the logarithms of the values, shape (p, p)."""
    discrepancy: Discrepancy
    notes: Tuple[str, ...] = ()
    """Sentences on what the windows cannot tell."""
    settings: Settings = field(default_factory=dict)
    """What was in force, where that is known."""
    evidence: Tuple[Mapping[str, Any], ...] = ()
    origin: Mapping[str, Any] = field(default_factory=dict)
    """Date, version, hardware: for people."""

    @classmethod
    def of(cls, calibration: Calibration, models: Mapping[str, ClusterModel], **kept: Any) -> Fit:
        """Take a calibration. `models` may hold more scenarios than were measured."""
        prior, identifiability = calibration.prior, identify(calibration)
        spread = np.asarray([parameter.spread for parameter in prior.parameters])
        deviation = np.sqrt(np.diag(calibration.covariance)) * spread
        centre, low, high = (prior.values(x) for x in (0.0 * calibration.x, prior.low, prior.high))
        parameters = tuple(
            FittedParameter(
                p.name, p.unit, p.meaning, calibration.values[p.name], float(deviation[n]), centre[p.name], p.spread,
                _verdict(p.name, identifiability), low[p.name], high[p.name],
            )
            for n, p in enumerate(prior.parameters)
        )  # fmt: skip
        covariance = calibration.covariance * np.outer(spread, spread)
        evidence = tuple(_evidence(calibration))
        return cls(
            models,
            parameters,
            covariance,
            calibration.discrepancy,
            tuple(identifiability.sentences()),
            evidence=evidence,
            **kept,
        )

    @property
    def values(self) -> Dict[str, float]:
        """Likeliest value of each parameter."""
        return {parameter.name: parameter.value for parameter in self.parameters}

    def applied(self, model: ClusterModel) -> ClusterModel:
        """A model with the likeliest values: the drive's and the OSD's, and those of the model's clients."""
        return with_values(model, self.values)

    def draws(self, count: int, seed: int = 1) -> List[Dict[str, float]]:
        """Values drawn from the posterior."""
        if not self.parameters:
            return [{}] * count
        centre = np.log([parameter.value for parameter in self.parameters])
        random = np.random.default_rng(seed)
        places = np.exp(random.multivariate_normal(centre, self.covariance, size=count, method="eigh"))
        low, high = ([getattr(p, name) for p in self.parameters] for name in ("low", "high"))
        return [dict(zip(self.values, map(float, np.clip(place, low, high)))) for place in places]

    def model(self, scenario: Optional[str], place: str = "--scenario") -> ClusterModel:
        """The cluster with the work of a scenario. Raises InputError where there is none of that name."""
        if scenario is None and len(self.models) == 1:
            return next(iter(self.models.values()))
        if scenario is None or scenario not in self.models:
            name = "nothing" if scenario is None else repr(scenario)
            raise InputError(place, name, f"one of {', '.join(self.models)}")
        return self.models[scenario]

    def to_dict(self) -> Dict[str, Any]:
        """Plain values; `from_dict` is the inverse."""
        described = {name: description.to_dict(model) for name, model in self.models.items()}
        first = next(iter(described.values()))
        return {
            "schema": SCHEMA,
            "what": "twin fit",
            **dict(self.origin),
            "cluster": {key: value for key, value in first.items() if key in description.HARDWARE},
            "scenarios": {
                name: {key: value for key, value in whole.items() if key not in description.HARDWARE}
                for name, whole in described.items()
            },
            "settings": dict(self.settings),
            "parameters": [dict(vars(parameter)) for parameter in self.parameters],
            "covariance": [[float(value) for value in row] for row in self.covariance],
            "discrepancy": self.discrepancy.to_dict(),
            "notes": list(self.notes),
            "evidence": [dict(entry) for entry in self.evidence],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], place: Place = dotted) -> Fit:
        """Inverse of `to_dict`. Raises InputError for the first thing that is wrong."""
        if data["schema"] != SCHEMA or isinstance(data["schema"], bool):
            raise InputError(place("schema"), repr(data["schema"]), f"{SCHEMA}, the version that this program reads")
        models = {}
        for name, work in data["scenarios"].items():
            whole = {**data["cluster"], **work}
            models[name] = description.from_dict(whole, _in_parts(place, name))
        if not models:
            raise InputError(place("scenarios"), "no scenario", "at least one")
        parameters = tuple(_fitted(entry, place, n) for n, entry in enumerate(data["parameters"]))
        covariance = _covariance(data["covariance"], len(parameters), place)
        try:
            discrepancy = Discrepancy.from_dict(data["discrepancy"])
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InputError(place("discrepancy"), f"{error}", "what `twin fit` writes") from None
        origin = {key: value for key, value in data.items() if key not in _KEPT}
        return cls(
            models, parameters, covariance, discrepancy, tuple(data.get("notes", ())), dict(data.get("settings", {})),
            tuple(data.get("evidence", ())), origin,
        )  # fmt: skip


def identify(calibration: Calibration) -> Identifiability:
    """What the windows say of each parameter."""
    return identifiability(calibration.prior.names, calibration.information, calibration.covariance)


def described_fit(models: Mapping[str, ClusterModel], settings: Settings) -> Fit:
    """No fit: models as described, of whose errors nothing is known."""
    return Fit(models, (), np.zeros((0, 0)), Discrepancy({}, 0.0, 0), settings=settings)


def _in_parts(place: Place, scenario: str) -> Place:
    """Where a part of a scenario's model stands: the hardware is shared."""

    def where(*keys: object) -> str:
        shared = bool(keys) and keys[0] in description.HARDWARE
        return place(*(("cluster",) if shared else ("scenarios", scenario)), *keys)

    return where


def _verdict(name: str, identifiability: Identifiability) -> str:
    if name in identifiability.determined:
        return DETERMINED
    if name in identifiability.silent:
        return SILENT
    return VAGUE if name in identifiability.vague else TOGETHER


def _evidence(calibration: Calibration) -> List[Dict[str, Any]]:
    outputs = calibration.outputs
    measured, predicted, held_out = (
        outputs.values(z) for z in (outputs.z, calibration.predicted, calibration.held_out)
    )
    entries: List[Dict[str, Any]] = []
    for n, window in enumerate(outputs.observations):
        places = [place for place, (owner, _) in enumerate(outputs.names) if owner == n]
        entries.append(
            {
                "scenario": window.scenario,
                "label": window.label,
                "settings": dict(window.settings),
                "measured": {outputs.names[place][1]: float(measured[place]) for place in places},
                "predicted": {outputs.names[place][1]: float(predicted[place]) for place in places},
                "held_out": {outputs.names[place][1]: float(held_out[place]) for place in places},
            }
        )
    return entries


def _fitted(entry: Mapping[str, Any], place: Place, number: int) -> FittedParameter:
    (parameter,) = named([str(entry.get("name"))], place("parameters", number, "name"))
    try:
        fitted = FittedParameter(**entry)
    except TypeError as error:
        raise InputError(place("parameters", number), str(error), "what `twin fit` writes") from None
    for key in ("value", "deviation", "low", "high"):
        value = getattr(fitted, key)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < float("inf"):
            raise InputError(
                place("parameters", number, key), repr(value), f"a number above 0, as {parameter.name} has"
            )
    return fitted


def _covariance(rows: Sequence[Sequence[float]], size: int, place: Place) -> Array:
    try:
        matrix = np.asarray(rows, dtype=float).reshape(len(rows), -1) if size else np.zeros((0, 0))
    except (TypeError, ValueError):
        raise InputError(place("covariance"), "rows of different length or no numbers", "a square of numbers") from None
    if matrix.shape != (size, size):
        raise InputError(place("covariance"), f"{matrix.shape[0]} rows of {matrix.shape[1]}", f"{size} rows of {size}")
    symmetric = bool(np.all(np.isfinite(matrix))) and np.allclose(matrix, matrix.T)
    if not symmetric or np.linalg.eigvalsh(matrix).min(initial=0.0) < -1e-9:
        raise InputError(place("covariance"), "no covariance", "a symmetric matrix without negative eigenvalues")
    return matrix
