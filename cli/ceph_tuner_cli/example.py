"""`ceph-tuner example`: the described clusters and objectives that come along, as files to begin with."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, List, Optional

import typer

from ceph_tuner.core.atomic_write import check_free, write_text
from ceph_tuner.core.bounded import decoded, read_file
from ceph_tuner.core.errors import InputError
from ceph_tuner.shipped import examples
from ceph_tuner_cli import complete
from ceph_tuner_cli.render import Format, FormatOption, emit, say
from ceph_tuner_cli.tables import Columns, columns


def example(
    name: Optional[str] = typer.Argument(None, help="Which one; none lists them.", autocompletion=complete.examples),
    directory: Path = typer.Option(Path(), "--directory", "-d", help="Where its files are written."),
    force: bool = typer.Option(False, "--force", help="Replace files of these names."),
    form: Format = FormatOption,
) -> None:
    """Write an example's files here: a described cluster, and its objectives."""
    names = examples()
    if name is None:
        rows = [{"name": each, "files": list(files), "about": _about(files)} for each, files in names.items()]
        emit(rows, form, lambda: _table(rows))
        return
    if name not in names:
        raise InputError("example", repr(name), f"one of {', '.join(names)}")
    for file in names[name]:
        check_free(directory / file, force)
    for file, path in names[name].items():
        write_text(directory / file, _text(path), force)
    paths = [str(directory / file) for file in names[name]]
    emit({"saved": paths}, form, lambda: "\n".join(paths))
    cluster = next((path for path in paths if Path(path).name.startswith("cluster-")), None)
    if cluster is not None:
        slo = next(path for path in paths if path != cluster)
        say([f"next: ceph-tuner recommend {cluster} --slo {slo}"])


def _about(files: Dict[str, Path]) -> str:
    """Its first file's first sentence."""
    lines = _text(next(iter(files.values()))).splitlines()
    comment = " ".join(line.lstrip("# ") for line in lines[: _end_of_comment(lines)])
    return comment.split(". ")[0].split(": `")[0].rstrip(".") + "."


def _text(path: Path) -> str:
    return decoded(read_file(path, "an example"), str(path))


def _end_of_comment(lines: List[str]) -> int:
    return next((at for at, line in enumerate(lines) if not line.startswith("#")), len(lines))


def _table(rows: List[Dict[str, Any]]) -> Columns:
    table = columns("name", "about", keep=("name",))
    for entry in rows:
        table.add_row(entry["name"], entry["about"])
    return table
