"""Why work waits now: two looks at a cluster in, causes out, what holds most first. Nothing is ever written.

    facts = gather(cluster.commander, cluster.clock, seconds=10)
    causes = examine(facts)          # each with its evidence, how much it holds, and what to do
    diagnose(facts).to_dict()        # these, and what could not be judged

`doctor` is about how a cluster is set up; this is about what waits at this moment.
"""

from ceph_tuner.core.why.cause import Cause, Evidence
from ceph_tuner.core.why.cluster_facts import gather
from ceph_tuner.core.why.diagnosis import Diagnosis, diagnose
from ceph_tuner.core.why.examination import CAUSES, examine
from ceph_tuner.core.why.facts import WORKS, WhyFacts

__all__ = ["CAUSES", "WORKS", "Cause", "Diagnosis", "Evidence", "WhyFacts", "diagnose", "examine", "gather"]
