"""A note on processors that are near their limit under what is recommended, where they are described."""

from __future__ import annotations

from typing import Tuple

from ceph_tuner.recommend.search import SearchedSettings
from ceph_tuner.recommend.turns import turns
from ceph_tuner.twin.simulation import Simulation

NEAR_LIMIT = 0.8
"""Share of the processors that is busy beyond which work waits for one noticeably, and a busier hour finds none."""


def busy_processors(search_result: SearchedSettings) -> Tuple[str, ...]:
    """Say so where they are; one more run for each turn of the work."""
    question, winner = search_result.question, search_result.winner
    if question.model.processors == 0:
        return ()
    busiest = 0.0
    for model in turns(question.model):
        simulation = Simulation(model, winner.settings, search_result.effort.seed)
        simulation.advance(search_result.run_s)
        busiest = max(busiest, simulation.processors_busy)
    if busiest <= NEAR_LIMIT:
        return ()
    under = "these settings" if search_result.choice.better else "what is in force"
    return (f"the hosts' processors are {busiest:.0%} busy under {under}: more work would wait for them",)
