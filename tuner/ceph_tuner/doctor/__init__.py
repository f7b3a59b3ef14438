"""What would make tuning pointless or wrong: facts of a cluster or a host in, findings out. Nothing is ever written."""

from ceph_tuner.doctor.cluster_facts import gather
from ceph_tuner.doctor.examination import examine, examine_host
from ceph_tuner.doctor.facts import Facts, HostFacts
from ceph_tuner.doctor.finding import COSTLY, MISLEADING, POINTLESS, Finding
from ceph_tuner.doctor.host_facts import read_host

__all__ = [
    "COSTLY",
    "MISLEADING",
    "POINTLESS",
    "Facts",
    "Finding",
    "HostFacts",
    "examine",
    "examine_host",
    "gather",
    "read_host",
]
