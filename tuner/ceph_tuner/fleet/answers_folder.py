"""A folder with each cluster's answer, as `ceph-tuner report` reads it, and its profile, as `fleet import|apply` do.

paris.json      the answer, and of which question it is: the same command goes on where it was stopped
paris.yaml      the profile under a digest; none where nothing is better than what is in force
"""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any, Dict, Iterable, Optional

from ceph_tuner.core.atomic_write import write_text
from ceph_tuner.core.bounded import DOCUMENT, read_file, read_json
from ceph_tuner.core.ceph.ports import Clock
from ceph_tuner.core.errors import InputError, PermissionRefused
from ceph_tuner.core.moments import iso
from ceph_tuner.core.profiles.profile import Profile
from ceph_tuner.fleet import portable_file
from ceph_tuner.fleet.advice import Advice, SearchTask
from ceph_tuner.fleet.portable import sealed

_OWN = "fleet"
"""Key of what only a fleet's answer has; the first one, by which also a part of one is known."""
_BEGINNING = f'{{\n "{_OWN}": {{'.encode()

GOOD_FOR_S = 86400.0
"""So long the answer is good for a cluster that was looked at: by then it may do something else."""


class AnswersFolder:
    """Made where there is none. Raises InputError where it cannot be, or would overwrite what is not its own."""

    def __init__(self, path: Path, names: Iterable[str], clock: Clock) -> None:
        self._path, self._clock = path, clock
        try:
            path.mkdir(parents=True, exist_ok=True)
        except PermissionError:
            raise PermissionRefused(str(path), "no permission to make it", "a directory to write to") from None
        except OSError as error:
            raise InputError(str(path), error.strerror or str(error), "a directory") from None
        for name in names:
            answer, profile = self.answer(name), self.profile(name)
            if answer.exists() and not _own(answer):
                raise _foreign(answer)
            if profile.exists() and not self._is_own_profile(name):
                raise _foreign(profile)

    def answer(self, name: str) -> Path:
        """Where a cluster's answer is."""
        return self._path / f"{name}.json"

    def profile(self, name: str) -> Path:
        """Where its profile is."""
        return self._path / f"{name}.yaml"

    def known(self, task: SearchTask) -> Optional[Advice]:
        """The answer to that question; None where there is none, it is too old, or it cannot be read."""
        document = _read(self.answer(task.name))
        with suppress(InputError, KeyError, TypeError, AttributeError):
            own = document.pop(_OWN)
            stale = task.seen and not 0 <= self._clock.now() - own["answered"] <= GOOD_FOR_S
            if own["question"] == task.digest and not stale:
                advice = Advice(document, None if own["profile"] is None else Profile.from_dict(own["profile"]))
                if advice.profile is not None and not self.profile(task.name).exists():
                    # the answer is known, even where nothing can be written
                    with suppress(InputError):
                        self._put_profile(task.name, advice.profile)
                return advice
        return None

    def keep(self, task: SearchTask, advice: Advice) -> None:
        """Write both files; the profile last, as an answer that has none beside it can give it back.

        Raises InputError where they cannot be written, or somebody has put a profile of his own there meanwhile.
        """
        # one of an older question would be taken for its own
        self._remove_profile(task.name)
        profile = None if advice.profile is None else advice.profile.to_dict()
        own = {"question": task.digest, "answered": self._clock.now(), "profile": profile}
        text = json.dumps({_OWN: own, **advice.document}, indent=1, ensure_ascii=False)
        write_text(self.answer(task.name), f"{text}\n", force=True)
        if advice.profile is not None:
            self._put_profile(task.name, advice.profile)

    def _remove_profile(self, name: str) -> None:
        path = self.profile(name)
        if path.exists() and not self._is_own_profile(name):
            raise _foreign(path)
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise PermissionRefused(str(path), error.strerror or str(error), "a file that can be removed") from None

    def _put_profile(self, name: str, profile: Profile) -> None:
        """Write it where there is none."""
        origin = {"cluster": name, "exported": iso(self._clock.now())}
        portable_file.write(self.profile(name), sealed(profile, origin))

    def _is_own_profile(self, name: str) -> bool:
        """Whether the profile that is there is the one of the answer beside it: any other is not ours to remove."""
        with suppress(InputError, KeyError, TypeError, AttributeError):
            there = portable_file.read(self.profile(name))
            ours = Profile.from_dict(_read(self.answer(name))[_OWN]["profile"])
            return there.profile == ours and there.origin["cluster"] == name and not there.signed_by
        return False


class Nowhere:
    """In place of a folder: nothing is known, nothing is kept."""

    def known(self, task: SearchTask) -> Optional[Advice]:
        """Without a folder no answer is left of an earlier run."""
        return None

    def keep(self, task: SearchTask, advice: Advice) -> None:
        """Without a folder an answer is shown and not written."""


def _foreign(path: Path) -> InputError:
    return InputError(str(path), "a file of somebody else", "another --output")


def _own(path: Path) -> bool:
    """Whether it is an answer of ours, or the beginning of one."""
    if _OWN in _read(path):
        return True
    with suppress(InputError):
        content = read_file(path, "an answer")
        return content.startswith(_BEGINNING) or _BEGINNING.startswith(content)
    return False


def _read(path: Path) -> Dict[str, Any]:
    try:
        document = read_json(read_file(path, "an answer"), str(path), DOCUMENT)
    except InputError:
        return {}
    return document if isinstance(document, dict) else {}
