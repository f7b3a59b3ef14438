"""Any mixed space as the unit cube, by scikit-optimize's dimensions."""

from __future__ import annotations

from typing import Any, List, Mapping, Sequence, Tuple

import numpy as np
from skopt.space import Categorical, Dimension, Integer
from skopt.space import Space as Dimensions

from ceph_tuner.optimise.contract import Array, Settings


class MixedSpace:
    """Real and integer dimensions take one side of the cube (log-uniform ones their logarithm), categories several.

    A category is the one with the largest coordinate; between two, one coordinate says which.
    """

    def __init__(self, dimensions: Sequence[Dimension]) -> None:
        """Dimensions are named, each by its own name. Raises ValueError where they are not."""
        self._names = [str(dimension.name) for dimension in dimensions]
        if any(dimension.name is None for dimension in dimensions) or len(set(self._names)) != len(self._names):
            raise ValueError(f"each dimension needs a name of its own (={', '.join(self._names)})")
        # transformers are set on the dimensions themselves: copies, so that the caller's stay as they are
        copies = [_copy(dimension) for dimension in dimensions]
        for dimension in copies:
            dimension.set_transformer("onehot" if isinstance(dimension, Categorical) else "normalize")
        self._space = Dimensions(copies)

    @property
    def size(self) -> int:
        """Dimensions of the cube."""
        return int(self._space.transformed_n_dims)

    @property
    def names(self) -> List[str]:
        """Of each side of the cube, the dimension that it belongs to."""
        sides = ((dimension.name, dimension.transformed_size) for dimension in self._space)
        return [str(name) for name, count in sides for _ in range(count)]

    @property
    def categories(self) -> List[List[int]]:
        """Of each categorical dimension, the sides that stand for it."""
        names = self.names
        categorical = [str(dimension.name) for dimension in self._space if isinstance(dimension, Categorical)]
        return [[side for side, owner in enumerate(names) if owner == name] for name in categorical]

    def steps(self, point: Array) -> Tuple[Array, Array]:
        """Give the points with the next smaller and the next larger of each whole number, each of shape (size,)."""
        settings = self.decode(list(point))
        whole = [dimension for dimension in self._space if isinstance(dimension, Integer)]
        smaller = {each.name: max(settings[each.name] - 1, each.low) for each in whole}
        larger = {each.name: min(settings[each.name] + 1, each.high) for each in whole}
        low, high = self.encode_all([{**settings, **smaller}, {**settings, **larger}])
        return low, high

    def decode(self, point: Sequence[float]) -> Settings:
        """Give the settings of a point."""
        return self.decode_all(np.asarray([point], dtype=float))[0]

    def decode_all(self, points: Array) -> List[Settings]:
        """Give the settings of each point, shape (n, size)."""
        rows = self._space.inverse_transform(np.clip(points, 0.0, 1.0))
        return [{name: _plain(value) for name, value in zip(self._names, row)} for row in rows]

    def encode(self, settings: Mapping[str, Any]) -> List[float]:
        """Give the point of settings. Raises KeyError for a name that lacks, ValueError for a value out of range."""
        return [float(u) for u in self.encode_all([settings])[0]]

    def encode_all(self, settings: Sequence[Mapping[str, Any]]) -> Array:
        """Give the point of each, shape (n, size). Raises as `encode` does."""
        rows = [[each[name] for name in self._names] for each in settings]
        outside = next((values for values in rows if values not in self._space), None)
        if outside is not None:
            raise ValueError(f"settings (={outside}) must be inside the space")
        return np.asarray(self._space.transform(rows), dtype=float).reshape(-1, self.size)

    def rounded(self, points: Array) -> Array:
        """Move points to where the settings are that they stand for, shape (n, size)."""
        inside = np.clip(points, 0.0, 1.0)
        if not len(inside):
            return inside
        settings = self._space.inverse_transform(inside)
        return np.asarray(self._space.transform(settings), dtype=float).reshape(-1, self.size)


def _copy(dimension: Dimension) -> Dimension:
    parameters = {name: getattr(dimension, name) for name in ("prior", "name") if hasattr(dimension, name)}
    if isinstance(dimension, Categorical):
        return Categorical(dimension.categories, name=dimension.name)
    return type(dimension)(dimension.low, dimension.high, base=dimension.base, **parameters)


def _plain(value: Any) -> Any:
    # numpy's own numbers cannot be written as JSON
    return value.item() if isinstance(value, np.generic) else value
