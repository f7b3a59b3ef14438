from __future__ import annotations

from ceph_tuner.describe.clients import described_load, part_of
from ceph_tuner.twin.model import ClientStream

STREAMS = (
    ClientStream("rbd", rate=4000.0, read_share=0.0, block_bytes=8192),
    ClientStream("other", rate=1000.0, read_share=1.0, block_bytes=4096),
)


def test_the_described_load_is_the_sum_of_its_streams() -> None:
    assert described_load(STREAMS) == {
        "client.iops": 5000.0,
        "client.read_iops": 1000.0,
        "client.write_iops": 4000.0,
        "client.bytes_s": 4000.0 * 8192 + 1000.0 * 4096,
    }


def test_a_stream_that_does_as_much_as_it_gets_leaves_the_load_unknown() -> None:
    assert described_load((*STREAMS, ClientStream("third", rate=None))) == {}


def test_a_part_of_the_load_has_its_share_of_rates_and_nothing_else() -> None:
    whole = {**described_load(STREAMS), "client.p95_ms": 8.0, "recovery.objects_s": 6.0}
    part = part_of(whole, 0.25)
    assert {name for name in whole if part[name] == whole[name]} == {"client.p95_ms", "recovery.objects_s"}
    assert part["client.iops"] == part["client.read_iops"] + part["client.write_iops"] == 1250.0
    assert part["client.bytes_s"] == whole["client.bytes_s"] / 4
