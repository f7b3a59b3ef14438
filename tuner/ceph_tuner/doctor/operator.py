"""What an operator of Kubernetes has set again over a change of ceph-tuner."""

from __future__ import annotations

from typing import List

from ceph_tuner.core.changes.custom_resource import resource_of
from ceph_tuner.core.knobs.settings import same
from ceph_tuner.core.wording import some
from ceph_tuner.doctor.facts import Facts
from ceph_tuner.doctor.finding import MISLEADING, Finding


def undone_by_rook(facts: Facts) -> List[Finding]:
    """Changes that stand in the journal and no more at the monitors, on a cluster that Rook manages."""
    now = {(entry.who, entry.name): entry.value for entry in facts.entries}
    undone = [
        f"{who} {name}: {now.get((who, name), 'no entry')} in the place of ours"
        for (who, name), ours in sorted(facts.kept.items())
        if resource_of(who) is None and not any(same(now.get((who, name)), value) for value in ours)
    ]
    if not facts.rook or not undone:
        return []
    return [
        Finding(
            "undone-by-rook",
            MISLEADING,
            "Changes of ceph-tuner that count as in force have been undone, on a cluster that Rook manages",
            some(undone),
            "the OSDs go by other values than the history says",
            f"See whether `spec.cephConfig` of the CephCluster in the namespace {facts.rook} names these options: Rook "
            "sets them again whenever it reconciles. Take the change back, and apply it with `--rook`, or take the "
            "options out of what states them there.",
            commands=(
                f"kubectl -n {facts.rook} get cephcluster -o yaml",
                f"ceph-tuner apply --rook {facts.rook}/NAME --cluster CLUSTER …",
            ),
        )
    ]
