"""Draws the README's picture: objectives and settings of the answer of `make recommend`, as the program prints them."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import List

from rich.console import Console
from rich.text import Text

HERE = Path(__file__).parent
PICTURE = HERE / "recommend.svg"
EXAMPLES = HERE.parent / "examples"
COMMAND = ["recommend", str(EXAMPLES / "cluster-nvme-node.yaml"), "--slo", str(EXAMPLES / "slo-nvme-node.yaml")]
LAST = "capacity of an OSD"
"""The picture ends above the line that begins so."""
WIDTH = 100
PROGRAM = "from ceph_tuner_cli.main import main; main()"


def printed(words: List[str]) -> str:
    """Standard output of a command of `ceph-tuner` on a terminal of WIDTH columns, with its colours."""
    environment = {**os.environ, "FORCE_COLOR": "1", "COLORTERM": "truecolor", "COLUMNS": str(WIDTH)}
    environment.pop("NO_COLOR", None)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *words],
        env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, encoding="utf-8", check=True,
    )  # fmt: skip
    return done.stdout


def picture(text: str, title: str, last: str) -> str:
    """SVG of a terminal with the lines of a text above the one that begins with `last`."""
    console = Console(record=True, width=WIDTH, file=io.StringIO())
    for line in text.splitlines():
        drawn = Text.from_ansi(line)
        if drawn.plain.lstrip().startswith(last):
            break
        console.print(drawn, highlight=False)
    drawing = console.export_svg(title=title, unique_id="ceph-tuner")
    # a page loads nothing from the network: the reader's own monospaced font does
    return re.sub(r"\s*@font-face \{.*?\}", "", drawing, flags=re.DOTALL)


if __name__ == "__main__":
    PICTURE.write_text(picture(printed(COMMAND), "make recommend", LAST), encoding="utf-8")
