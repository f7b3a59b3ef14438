"""What setup.py asks for and what the lock files of this folder pin."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Dict, Iterable, List, Mapping, Optional, Tuple

from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

FOLDER = Path(__file__).resolve().parent
PROGRAM = FOLDER / "program.txt"
DEVELOPMENT = FOLDER / "development.txt"
LOWEST = FOLDER / "lowest.txt"

_HASH = re.compile(r"\s--hash=(\S+)")


@dataclass(frozen=True)
class Pin:
    """One line of a lock file."""

    name: str
    """Normalised, as in an index's addresses."""
    version: Version
    marker: Optional[Marker]
    """Where it is installed; None stands for everywhere."""
    hashes: Tuple[str, ...]
    """Of each file of that release: `sha256:…`."""

    def applies(self, environment: Optional[Mapping[str, str]] = None) -> bool:
        """Whether it is installed by this Python, or by one with that environment of markers."""
        return self.marker is None or self.marker.evaluate(dict(environment or {}))

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


def read(lock: Path) -> List[Pin]:
    """Pins of a lock file. ValueError names a line that is none."""
    text = lock.read_text(encoding="utf-8").replace("\\\n", " ")
    lines = (line.strip() for line in text.splitlines())
    return [_pin(line, lock) for line in lines if line and not line.startswith("#")]


def _pin(line: str, lock: Path) -> Pin:
    written = _HASH.sub("", line)
    requirement = Requirement(written)
    exact = re.fullmatch(r"==([^*]+)", str(requirement.specifier))
    if exact is None or requirement.url:
        raise ValueError(f"{lock.name}: {written}: expected name==version")
    return Pin(canonicalize_name(requirement.name), Version(exact[1]), requirement.marker, tuple(_HASH.findall(line)))


def for_this_python(pins: Iterable[Pin]) -> Dict[str, Pin]:
    """By name, those that this Python installs."""
    return {pin.name: pin for pin in pins if pin.applies()}


def declared() -> Dict[str, List[Requirement]]:
    """By extra, the requirements of setup.py; "" stands for the program's own."""
    tree = ast.parse((FOLDER.parent / "setup.py").read_text(encoding="utf-8"))
    (call,) = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and getattr(n.func, "id", "") == "setup"]
    words = {keyword.arg: keyword.value for keyword in call.keywords}
    by_extra = {"": ast.literal_eval(words["install_requires"]), **ast.literal_eval(words["extras_require"])}
    return {extra: [Requirement(each) for each in requirements] for extra, requirements in by_extra.items()}
