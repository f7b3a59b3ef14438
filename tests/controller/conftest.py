"""The API server that these tests share, with the controller's definitions and role."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Iterator

import pytest

from kubernetes_server import DEPLOY, KubernetesServer

if TYPE_CHECKING:
    from at_api_server import Operator

TESTS = Path(__file__).resolve().parents[1]
# the module inside a mgr on a twin is theirs
sys.path.extend(str(TESTS / folder) for folder in ("mgr", "autopilot"))


@pytest.fixture(scope="module")
def kubernetes() -> Iterator[KubernetesServer]:
    with tempfile.TemporaryDirectory() as folder:
        server = KubernetesServer(Path(folder))
        try:
            server.start()
            for path in [*sorted((DEPLOY / "crds").glob("*.yaml")), DEPLOY / "controller.yaml"]:
                server.install(path.read_text("utf-8"))
            yield server
        finally:
            server.stop()


@pytest.fixture
def operator(kubernetes: KubernetesServer) -> Iterator[Operator]:
    from at_api_server import Operator, clear

    yield Operator(kubernetes)
    clear(kubernetes)
