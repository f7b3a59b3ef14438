from __future__ import annotations

import json
import sys
from typing import Tuple

import pytest

from ceph_tuner_cli import main


def called(capsys: pytest.CaptureFixture[str], *words: str) -> Tuple[int, str, str]:
    argv, sys.argv = sys.argv, ["ceph-tuner", "twin", "validate", *words]
    try:
        with pytest.raises(SystemExit) as ended:
            main.main()
    finally:
        sys.argv = argv
    captured = capsys.readouterr()
    return int(ended.value.code or 0), captured.out, captured.err


def test_the_shape_over_the_pg_count_is_printed_and_met(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = called(capsys, "-t", "c1", "--quick", "--seeds", "1", "--processes", "1", "-f", "json")
    document = json.loads(out)

    assert code == 0
    assert document["met"]
    reads = next(found for found in document["orderings"] if "reads" in found["falling"][0])
    assert reads["falling"][0] == "random reads, 16384 PGs"
    assert reads["predicted"] == sorted(reads["predicted"], reverse=True)


def test_an_unknown_table_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = called(capsys, "-t", "Z9")

    assert code == 2
    assert "Z9" in err
    assert "A1, A2" in err
