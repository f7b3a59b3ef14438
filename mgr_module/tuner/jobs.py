"""Long work in a thread: a command starts it, waits a little, and is told what came of it when asked again."""

from __future__ import annotations

import threading
import time
from typing import Any, Callable, Dict, Optional

from ceph_tuner.core.errors import RetryLater

from . import threads


class Job:
    """One piece of work and its end."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self.started = time.monotonic()
        self.result: Any = None
        self.error: Optional[BaseException] = None
        self.ended = float("inf")
        self._done = threading.Event()
        self._work = work
        threads.begin("tuner-job", self._run)

    @property
    def done(self) -> bool:
        """Whether it has ended."""
        return self._done.is_set()

    def wait(self, seconds: float) -> bool:
        """Whether it ended within the time."""
        return self._done.wait(seconds)

    def outcome(self) -> Any:
        """What the work returned; raises what it raised."""
        if self.error is not None:
            raise self.error
        return self.result

    def _run(self) -> None:
        try:
            self.result = self._work()
        except BaseException as error:
            self.error = error
        finally:
            self.ended = time.monotonic()
            self._done.set()


class Jobs:
    """At most one job by name at a time."""

    def __init__(self, patience: float = 8.0, fresh_s: float = 60.0) -> None:
        self._patience, self._fresh_s = patience, fresh_s
        self._jobs: Dict[str, Job] = {}
        self._lock = threading.Lock()

    def run(self, name: str, work: Callable[[], Any]) -> Any:
        """Start the work, or go on waiting for it where it was started before; give its outcome once.

        Raises RetryLater where it takes longer than a command may wait.
        """
        with self._lock:
            job = self._jobs.get(name)
            # an outcome that nobody came for is old news
            if job is None or time.monotonic() - job.ended > self._fresh_s:
                job = self._jobs[name] = Job(work)
        if not job.wait(self._patience):
            age = time.monotonic() - job.started
            raise RetryLater(f"{name} is at work since {age:.0f} s: run the command again for its outcome", "")
        with self._lock:
            if self._jobs.get(name) is job:
                del self._jobs[name]
        return job.outcome()
