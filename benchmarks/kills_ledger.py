"""What happened in a measurement of kills, and what broke a law, from all of its threads."""

from __future__ import annotations

import random
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Callable, Mapping, Optional, Set

import runs_file
from configuration_laws import Breach

from ceph_tuner.core.ceph.ports import Commander
from ceph_tuner.core.errors import TunerError

FAULTS = ("internal error", "object has no attribute", "Traceback")
"""Words of a failure that is the product's own."""


class Ledger:
    """What happened and what broke a law, from all threads."""

    def __init__(self, output: Optional[Path], run: int) -> None:
        self._output, self._run = output, run
        self._lock = threading.Lock()
        self.counts: Counter[str] = Counter()
        self.broken: Counter[str] = Counter()
        self._told: Set[Breach] = set()

    def count(self, what: str, more: int = 1) -> None:
        with self._lock:
            self.counts[what] += more

    def violation(self, law: str, words: str) -> None:
        """One line; the same words again only count."""
        with self._lock:
            self.broken[law] += 1
            if Breach(law, words) in self._told:
                return
            self._told.add(Breach(law, words))
            print(f"{time.strftime('%H:%M:%S')} {law}: {words}", file=sys.stderr)
            if self._output is not None:
                line = {"violation": law, "words": words, "run": self._run, "at": time.time()}
                runs_file.append(self._output, line)

    def told(self, work: Callable[[Stop], None], stop: Stop) -> None:
        """Do the work of a thread: one that ends by an error measures no more, and that is no clean run."""
        try:
            work(stop)
        except Exception as error:
            self.violation("measurement", f"{type(error).__name__}: {error}")


class Stop(threading.Event):
    """Set when the time is over."""

    def pause(self, randomness: random.Random, least: float, most: float) -> bool:
        """Wait for a random time; whether it is over."""
        return self.wait(randomness.uniform(least, most))


def carried_out(
    commander: Commander, ledger: Ledger, prefix: str, arguments: Mapping[str, str], payload: str = ""
) -> bool:
    """Whether the plugin did what a command wants; what a dead mgr does not answer is no violation."""
    ledger.count("commands of the plugin")
    try:
        commander.mon(prefix, arguments, payload)
    except TunerError as error:
        ledger.count("commands of the plugin refused")
        if any(words in str(error) for words in FAULTS):
            ledger.violation("exit code", f"`ceph {prefix}`: {error}")
        return False
    ledger.count("commands of the plugin carried out")
    return True
