"""A real Prometheus server for the tests."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple

import requests
from ruamel.yaml import YAML

import debian_packages
from waiting import until

SCRAPE_S = 2
"""A mgr on a busy machine answers within two seconds, not always within one."""


Lines = Dict[str, List[Tuple[str, float, float]]]
"""By metric: labels as text, value, seconds since the epoch."""


def program(name: str) -> Path:
    """`prometheus` or `promtool`: the machine's own, else the one of Debian's package."""
    installed = shutil.which(name)
    if installed:
        return Path(installed)
    found = debian_packages.unpacked(("prometheus",)) / "usr" / "bin" / name
    # from trixie on, promtool is a package of its own
    return found if found.exists() else debian_packages.unpacked((name,)) / "usr" / "bin" / name


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass(frozen=True)
class Target:
    """What is scraped, and the labels that its series get."""

    port: int
    labels: Dict[str, str]


class PrometheusServer:
    """A server at work; can be stopped, and started again with what it has stored."""

    def __init__(self, directory: Path, targets: Sequence[Target], rules: Optional[Path] = None) -> None:
        self.directory, self.port = directory, free_port()
        self._process: Optional[subprocess.Popen[bytes]] = None
        jobs: List[Dict[str, Any]] = [
            {
                "job_name": f"target-{number}",
                "static_configs": [{"targets": [f"127.0.0.1:{target.port}"], "labels": target.labels}],
            }
            for number, target in enumerate(targets)
        ]
        configuration = {
            "global": {"scrape_interval": f"{SCRAPE_S}s", "evaluation_interval": f"{SCRAPE_S}s"},
            "scrape_configs": jobs,
            **({"rule_files": [str(rules)]} if rules else {}),
        }
        with (directory / "prometheus.yml").open("w", encoding="utf-8") as file:
            YAML(typ="safe", pure=True).dump(configuration, file)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self, *options: str) -> None:
        command = [
            str(program("prometheus")),
            f"--config.file={self.directory / 'prometheus.yml'}",
            f"--storage.tsdb.path={self.directory / 'data'}",
            f"--web.listen-address=127.0.0.1:{self.port}",
            "--log.level=warn",
            *options,
        ]
        with (self.directory / "prometheus.log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self.directory)
        end_s = time.monotonic() + 60
        while not self._ready():
            assert self._process.poll() is None, (self.directory / "prometheus.log").read_text()[-1000:]
            assert time.monotonic() < end_s, "Prometheus is not ready within a minute"
            time.sleep(0.1)

    def stop(self, number: int = signal.SIGTERM) -> None:
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait(30)
            self._process = None

    def targets(self) -> List[Dict[str, Any]]:
        """As the server sees them."""
        answer = requests.get(f"{self.url}/api/v1/targets", timeout=10).json()
        found: List[Dict[str, Any]] = answer["data"]["activeTargets"]
        return found

    def wait_for_scrapes(self, seconds: float = 60) -> None:
        """Until each target was scraped."""
        until(
            lambda: {target["health"] for target in self.targets()} == {"up"},
            seconds,
            lambda: [(target["scrapeUrl"], target["lastError"]) for target in self.targets()],
        )

    def _ready(self) -> bool:
        try:
            return requests.get(f"{self.url}/-/ready", timeout=5).status_code == 200
        except requests.RequestException:
            return False


@contextmanager
def serving(directory: Path, targets: Sequence[Target], rules: Optional[Path] = None) -> Iterator[PrometheusServer]:
    """A server that scrapes these every second; ended with the block."""
    server = PrometheusServer(directory, targets, rules)
    try:
        server.start()
        yield server
    finally:
        server.stop()


@contextmanager
def remembering(directory: Path, lines: Lines, *options: str) -> Iterator[PrometheusServer]:
    """A server that finds these in its storage and scrapes nobody."""
    with (directory / "past.txt").open("w", encoding="utf-8") as file:
        for name, samples in lines.items():
            file.write(f"# TYPE {name} unknown\n")
            # OpenMetrics wants the samples of a series together
            for labels, value, at in sorted(samples, key=lambda sample: (sample[0], sample[2])):
                file.write(f"{name}{{{labels}}} {value!r} {at}\n")
        file.write("# EOF\n")
    command = [str(program("promtool")), "tsdb", "create-blocks-from", "openmetrics", "past.txt", "data", "-q"]
    subprocess.run(command, cwd=directory, check=True, capture_output=True, timeout=120)
    made = PrometheusServer(directory, [])
    made.start(*options)
    try:
        yield made
    finally:
        made.stop()
