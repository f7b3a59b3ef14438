from __future__ import annotations

import json

from running_program import Run


def test_the_shape_over_the_pg_count_is_printed_and_met(run: Run) -> None:
    code, out, _ = run("twin", "validate", "-t", "c1", "--quick", "--seeds", "1", "--processes", "1", "-f", "json")
    document = json.loads(out)

    assert code == 0
    assert document["met"]
    reads = next(found for found in document["orderings"] if "reads" in found["falling"][0])
    assert reads["falling"][0] == "random reads, 16384 PGs"
    assert reads["predicted"] == sorted(reads["predicted"], reverse=True)


def test_an_unknown_table_is_refused(run: Run) -> None:
    code, _, err = run("twin", "validate", "-t", "Z9")

    assert code == 2
    assert "Z9" in err
    assert "A1, A2" in err
