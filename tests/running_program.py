"""The program as people run it: its arguments in, its exit code and what it wrote out."""

from __future__ import annotations

import sys
from typing import Callable, Tuple

import pytest

from ceph_tuner_cli.main import main

Run = Callable[..., Tuple[int, str, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    def running(*arguments: str) -> Tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["ceph-tuner", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        return int(ended.value.code or 0), out, err

    return running
