"""Where an installation has the files that are no Python, whichever way pip put it there."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import ceph_tuner

EXAMPLE = "share/ceph-tuner/examples/cluster-nvme-node.yaml"


@pytest.mark.parametrize(
    ("packages", "prefix"),
    [
        ("lib/python3.11/site-packages", "."),
        ("local/lib/python3.11/dist-packages", "local"),
        ("target", "target"),
    ],
    ids=["--user or --prefix", "Debian's /usr/local", "--target"],
)
def test_the_examples_are_found_where_pip_put_them(packages: str, prefix: str, tmp_path: Path) -> None:
    library, home = Path(ceph_tuner.__file__).parent, tmp_path / packages / "ceph_tuner"
    for name in ("__init__.py", "core/__init__.py", "core/errors.py", "shipped/__init__.py"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library / name, home / name)
    example = tmp_path / prefix / EXAMPLE
    example.parent.mkdir(parents=True)
    example.write_text("", "utf-8")
    # an installation of another version that this Python has as well
    other = tmp_path / "python" / EXAMPLE
    other.parent.mkdir(parents=True)
    other.write_text("", "utf-8")
    begin = f"import sys; sys.prefix = {str(tmp_path / 'python')!r}; "
    script = "from ceph_tuner.shipped import examples; print(examples()['nvme-node']['cluster-nvme-node.yaml'])"
    done = subprocess.run(
        [sys.executable, "-S", "-c", begin + script],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path / packages)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() == str(example.resolve()), done.stderr
