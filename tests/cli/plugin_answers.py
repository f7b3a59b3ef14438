"""The plugin as a command of the program sees it: answers, or an error."""

from __future__ import annotations

import json
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

import pytest

from ceph_tuner.cluster.connection import Cluster
from ceph_tuner.core.errors import CommandFailed
from ceph_tuner.core.knobs.releases import TENTACLE
from ceph_tuner_cli import cluster_option
from monitors import ManualClock, Monitors


class PluginAnswers:
    """A commander: a document by the command, or an error."""

    def __init__(self, answer: Callable[[str], Any]) -> None:
        self.asked: List[Tuple[str, Dict[str, str], str]] = []
        """Commands with their arguments and payloads."""
        self.error: Optional[CommandFailed] = None
        self._answer = answer

    def mon(self, prefix: str, arguments: Mapping[str, str], payload: str = "") -> str:
        self.asked.append((prefix, dict(arguments), payload))
        if self.error is not None:
            raise self.error
        return json.dumps(self._answer(prefix))


def plugin_answering(monkeypatch: pytest.MonkeyPatch, answer: Callable[[str], Any]) -> PluginAnswers:
    """Every cluster that a command opens has this plugin."""
    answers, monitors = PluginAnswers(answer), Monitors()
    commander: Any = answers
    cluster = Cluster("a", commander, monitors, monitors.store, TENTACLE, "20.2.4", clock=ManualClock())
    monkeypatch.setattr(cluster_option, "open_cluster", lambda name: cluster)
    return answers
