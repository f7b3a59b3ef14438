from __future__ import annotations

from tuner import render_recommendation

NEAREST = [{"objective": "client.p95_ms <= 20 ms", "instead": "client.p95_ms <= 26 ms", "bound": 26.0, "share": 0.3}]


def test_what_was_learnt_is_said_in_lines_of_a_terminal() -> None:
    importance = {
        "client.p95_ms": [{"knob": "osd_max_scrubs", "share": 0.61}, {"knob": "osd_scrub_chunk_max", "share": 0.2}],
        "client.iops": [],
    }
    way = {"conflicts": [["client.p95_ms <= 20 ms", "scrub.bytes_s >= 9 MB/s"], ["x <= 1"]], "nearest": NEAREST}
    lines = render_recommendation.learnt({"importance": importance, "in_the_way": way})
    assert "client.p95_ms  osd_max_scrubs 61 %, osd_scrub_chunk_max 20 %" in lines[0]
    assert "client.iops    hardly any knob" in lines[0]
    text = " ".join(" ".join(lines).split())
    assert "client.p95_ms <= 20 ms and scrub.bytes_s >= 9 MB/s cannot be met together" in text
    assert "x <= 1 is out of reach by itself" in text
    assert "nearest that can be: client.p95_ms <= 26 ms" in text
    assert all(len(part) <= 80 for line in lines for part in line.splitlines())
    no_conflict = {"importance": importance, "in_the_way": {"conflicts": [], "nearest": NEAREST}}
    assert len(render_recommendation.learnt(no_conflict)) == 2
    assert render_recommendation.learnt(None) == []
