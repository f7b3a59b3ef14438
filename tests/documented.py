"""The code blocks of the documentation, with what a page says about how they are tested.

Above a block of commands a page may say, as comments that readers do not see:

    <!-- only parsed: WHY -->             none of its commands is run, and why
    <!-- only parsed `PREFIX`: WHY -->    the commands that begin with PREFIX are not
    <!-- exits with CODE: WHY -->         the exit code that all of its commands have, where it is not 0

Lines that begin with `$ ` are commands; a line after them is output, where `…` stands for anything.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Dict, List, Sequence, Tuple

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"

_FENCE = re.compile(r"^( *)(`{3,})(\S*)\s*$")
_NUMBER = r"(?<![\w.])(\d+(?:\.\d+)?)"
"""One that counts or measures: that of `osd.0` and `p95` is a part of a name."""
_PARSED = re.compile(r"<!-- only parsed(?: `(?P<prefix>[^`]+)`)?: (?P<why>\S.*?) -->")
_EXITS = re.compile(r"<!-- exits with (?P<code>\d+): (?P<why>\S.*?) -->")


@dataclass(frozen=True)
class Command:
    """One command of a page."""

    text: str
    """As it stands there, without the comment at its end."""
    line: int
    exits: int = 0
    unrun: str = ""
    """Why it is only parsed; empty: it runs."""
    output: Tuple[str, ...] = ()

    @property
    def words(self) -> List[str]:
        """Up to what the shell does with it: a pipe, a redirection, another command."""
        lexer = shlex.shlex(self.text, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        words: List[str] = []
        for word in lexer:
            if set(word) <= set("|&;<>"):
                break
            words.append(word)
        return words

    @property
    def parts(self) -> List[Command]:
        """Each command of a pipe or a list."""
        pieces = re.split(r" (?:\||&&) ", self.text)
        return [Command(piece, self.line, self.exits, self.unrun) for piece in pieces]


@dataclass(frozen=True)
class Block:
    """What stands between two fences."""

    page: Path
    line: int
    language: str
    text: str
    notes: Tuple[str, ...] = ()
    """The comments above it."""

    @property
    def place(self) -> str:
        """Page and line, to be found."""
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def commands(self) -> List[Command]:
        """Of a console block, in order."""
        parsed = [found for note in self.notes if (found := _PARSED.fullmatch(note))]
        exits = [int(found["code"]) for note in self.notes if (found := _EXITS.fullmatch(note))]
        lines = self.text.splitlines()
        starts = [number for number, line in enumerate(lines) if line.startswith("$ ")]
        made = []
        for start, end in zip(starts, [*starts[1:], len(lines)]):
            text = _without_comment(lines[start][2:])
            reasons = [each["why"] for each in parsed if not each["prefix"] or text.startswith(each["prefix"])]
            output = tuple(line for line in lines[start + 1 : end] if line.strip())
            made.append(Command(text, self.line + 1 + start, (exits or [0])[0], (reasons or [""])[0], output))
        return made


@dataclass
class _Open:
    indent: str
    fence: str
    language: str
    line: int
    lines: List[str] = field(default_factory=list)


def blocks(page: Path) -> List[Block]:
    """The code blocks of a page; those of nested fences belong to the outer one."""
    found: List[Block] = []
    inside: Any = None
    notes: List[str] = []
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        match = _FENCE.match(line)
        if inside is not None:
            if match and match[2] == inside.fence and not match[3]:
                text = "\n".join(each[len(inside.indent) :] for each in inside.lines) + "\n"
                found.append(Block(page, inside.line, inside.language, text, tuple(notes)))
                inside, notes = None, []
            else:
                inside.lines.append(line)
        elif match:
            inside = _Open(match[1], match[2], match[3], number)
        elif line.strip().startswith("<!-- ") and line.rstrip().endswith(" -->"):
            notes.append(line.strip())
        elif line.strip():
            notes = []
    return found


def unlike(shown: Sequence[str], said: str, tolerance: float = 0.0) -> str:
    """The first shown line that is not what was said there; empty: all of it is shown.

    A line of `…` stands for any lines, `…` in a line for any words. Numbers may be off by a part of the shown ones.
    """
    lines = [line for line in said.splitlines() if line.strip()]
    at, may_skip = 0, False
    for line in shown:
        if line.strip() == "…":
            may_skip = True
            continue
        fits = [number for number, other in enumerate(lines[at:], at) if _is_like(line, other, tolerance)]
        if not fits or (fits[0] != at and not may_skip):
            return line
        at, may_skip = fits[0] + 1, False
    return "" if may_skip or at == len(lines) else f"{shown[-1] if shown else ''} (and then: {lines[at]})"


def _is_like(shown: str, said: str, tolerance: float) -> bool:
    parts = re.split(_NUMBER, " ".join(shown.split()))
    words = [".*?".join(map(re.escape, part.split("…"))) for part in parts[::2]]
    found = re.fullmatch(_NUMBER.join(words), " ".join(said.split()))
    if found is None:
        return False
    # `split` gives words and numbers in turn
    pairs = [(float(own), float(other)) for own, other in zip(parts[1::2], found.groups())]
    return all(abs(own - other) <= tolerance * own for own, other in pairs)


def pages() -> List[Path]:
    """Every page that people read, the generated ones included."""
    named = [ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    return [*named, *sorted(DOCS.rglob("*.md")), *sorted((ROOT / "benchmarks" / "results").glob("*.md"))]


def every_block(*languages: str) -> List[Block]:
    """All blocks of some languages on all pages."""
    return [block for page in pages() for block in blocks(page) if block.language in languages]


def unknown_notes(block: Block) -> List[str]:
    """Comments that look like ours and are not understood: a mistyped one must not hide anything."""
    ours = ("<!-- only", "<!-- exit", "<!-- skip")
    return [
        note
        for note in block.notes
        if note.startswith(ours) and not _PARSED.fullmatch(note) and not _EXITS.fullmatch(note)
    ]


def parse(root: Any, words: List[str]) -> Dict[str, Any]:
    """What a command of `ceph-tuner` would be called with; nothing is run. Raises what the program raises."""
    context, command, rest = None, root, list(words)
    while True:
        context = command.make_context(command.name, rest, parent=context)
        if not hasattr(command, "commands"):
            return dict(context.params)
        # click 8.2 put the underscore there
        protected = vars(context).get("_protected_args") or vars(context).get("protected_args", ())
        _, command, rest = command.resolve_command(context, [*protected, *context.args])


def _without_comment(text: str) -> str:
    """A comment at a line's end, if two spaces stand before it, is for the reader."""
    return re.sub(r"\s{2,}# .*$", "", text).rstrip()
