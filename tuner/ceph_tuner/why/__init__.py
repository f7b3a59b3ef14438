"""Why work waits now: two looks at a cluster in, causes out, what holds most first. Nothing is ever written.

    facts = gather(cluster.commander, cluster.clock, seconds=10)
    causes = examine(facts)          # each with its evidence, how much it holds, and what to do

`doctor` is about how a cluster is set up; this is about what waits at this moment.
"""

from ceph_tuner.why.cause import Cause, Evidence
from ceph_tuner.why.cluster_facts import gather
from ceph_tuner.why.examination import CAUSES, examine
from ceph_tuner.why.facts import WORKS, WhyFacts

__all__ = ["CAUSES", "WORKS", "Cause", "Evidence", "WhyFacts", "examine", "gather"]
