"""Whoever searches, and nobody listens."""

from __future__ import annotations

from ceph_tuner.recommend import Prediction


class SilentListener:
    """`recommend.SearchListener`."""

    def phase(self, text: str, done: int, total: int) -> None:
        """Say nothing."""

    def best(self, prediction: Prediction) -> None:
        """Say nothing."""
