"""The API server that these tests share."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Iterator

import pytest

from kubernetes_server import KubernetesServer


@pytest.fixture(scope="module")
def kubernetes() -> Iterator[KubernetesServer]:
    with tempfile.TemporaryDirectory() as folder:
        server = KubernetesServer(Path(folder))
        try:
            server.start()
            yield server
        finally:
            server.stop()
