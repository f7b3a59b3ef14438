"""Values of a description, read on behind its faults: each is sound, or its fault is kept and a default stands in."""

from __future__ import annotations

from typing import Any, Callable, List, Mapping, Optional, Sequence, Tuple, TypeVar

from ceph_tuner.core.errors import InputError
from ceph_tuner.files.cluster_bounds import QuantityBounds
from ceph_tuner.files.quantities import quantity
from ceph_tuner.files.schema import SchemaFault
from ceph_tuner.files.yaml_document import YamlDocument

T = TypeVar("T")

Keys = Tuple[object, ...]
"""The way to a part of the document."""


class SoundValues:
    """A document's values, held against its schema and their bounds; `faults` are those of the schema."""

    def __init__(self, document: YamlDocument, faults: Sequence[SchemaFault]) -> None:
        self.place = document.place
        self.data: Mapping[str, Any] = document.data if isinstance(document.data, dict) else {}
        self.bounds = QuantityBounds()
        self._document = document
        self._faults = list(faults)

    @property
    def has_faults(self) -> bool:
        """Whether anything is wrong so far."""
        return bool(self._faults)

    @property
    def readable(self) -> bool:
        """Whether the document is a mapping of the schema's version."""
        return not any(not fault.keys or fault.keys == ("schema",) for fault in self._faults)

    def in_order(self) -> List[InputError]:
        """Give the faults by their lines."""
        return [fault.error for fault in sorted(self._faults, key=lambda fault: fault[:2])]

    def fault(self, keys: Keys, error: InputError) -> None:
        """Keep a fault, so that what follows is read all the same."""
        self._faults.append(SchemaFault(False, self._document.line(*keys), keys, error))

    def is_sound(self, keys: Keys) -> bool:
        """Whether no fault lies in the part, or in what it is a part of."""
        return not any(at[: len(keys)] == keys or keys[: len(at)] == at for _, _, at, _ in self._faults)

    def entries(self, *where: str) -> List[Tuple[Keys, Mapping[str, Any]]]:
        """Give the sound entries of a list, each with its keys."""
        part: Any = self.data
        for key in where:
            part = part.get(key, {}) if isinstance(part, dict) else {}
        if not isinstance(part, list):
            return []
        try:
            self.bounds.check_count(part, self.place(*where))
        except InputError as error:
            self.fault(where, error)
            return []
        every = [((*where, index), entry) for index, entry in enumerate(part)]
        return [(keys, entry) for keys, entry in every if self.is_sound(keys)]

    def number(self, data: Mapping[str, Any], keys: Keys, name: str, default: int) -> int:
        """A whole number; the default where there is none, or a fault."""
        if name not in data or not self.is_sound((*keys, name)):
            return default
        try:
            self.bounds.check(name, data[name], self.place(*keys, name))
        except InputError as error:
            self.fault((*keys, name), error)
            return default
        return int(data[name])

    def amount(
        self,
        data: Mapping[str, Any],
        keys: Keys,
        name: str,
        kind: str,
        default: float,
        zero: bool = False,
    ) -> float:
        """A quantity of a kind (`quantities.py`) in SI units; the default where there is none, or a fault."""
        if name not in data or not self.is_sound((*keys, name)):
            return default
        place = self.place(*keys, name)
        try:
            value = quantity(data[name], kind, place, zero)
            self.bounds.check(name, value, place)
        except InputError as error:
            self.fault((*keys, name), error)
            return default
        return value

    def part(self, keys: Keys, make: Callable[[], T]) -> Optional[T]:
        """What the model itself refuses is told with the place of the part that it refuses."""
        if not self.is_sound(keys):
            return None
        try:
            return make()
        except ValueError as error:
            self.fault(keys, InputError(self.place(*keys), str(error), "values within these bounds"))
            return None
