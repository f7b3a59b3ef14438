"""A learner's hyper-parameters: ten of every kind, two constraints; kept aside, the search is not developed on it.

Boosted trees on main components, of data that a seed draws. The objective is the loss on unseen data; the share of
positives that are missed and the size of the model are bounded by what the start has, and a margin.
"""

from __future__ import annotations

import json
from typing import Any, Dict, Iterable, Iterator, List, Tuple

import numpy as np
from search_problem import Problem, noisy
from skopt.space import Categorical, Integer, Real

from ceph_tuner.optimise.contract import Constraint, Settings

BUDGET, NOISE = 40, 0.02
MARGIN, POINTS = 1.1, 40
"""How much worse than the start the bounded metrics may be; random settings from which deviations are taken."""
ROWS, COLUMNS = 900, 24

START: Settings = {
    "rate": 0.1, "rounds": 40, "leaves": 16, "depth": 6, "least": 20, "l2": 1e-3, "bins": 64, "share": 0.7,
    "weights": "none", "components": 12,
}  # fmt: skip


def space() -> List[Any]:
    return [
        Real(0.01, 1.0, prior="log-uniform", name="rate"),
        Integer(5, 80, prior="log-uniform", name="rounds"),
        Integer(2, 48, prior="log-uniform", name="leaves"),
        Integer(1, 12, name="depth"),
        Integer(1, 80, prior="log-uniform", name="least"),
        Real(1e-6, 1e2, prior="log-uniform", name="l2"),
        Integer(8, 255, prior="log-uniform", name="bins"),
        Real(0.1, 1.0, name="share"),
        Categorical(["none", "balanced"], name="weights"),
        Integer(2, COLUMNS, name="components"),
    ]


def problems(seeds: Iterable[int]) -> Iterator[Problem]:
    """One for each seed."""
    for seed in seeds:
        yield _problem(seed)


def _data(seed: int) -> Tuple[Any, Any, Any, Any]:
    from sklearn.datasets import make_classification
    from sklearn.model_selection import train_test_split

    x, y = make_classification(
        2 * ROWS, COLUMNS, n_informative=8, n_redundant=6, n_clusters_per_class=3, weights=[0.75], flip_y=0.05,
        class_sep=0.8, random_state=seed,
    )  # fmt: skip
    return tuple(train_test_split(x, y, train_size=ROWS, random_state=seed))


def learnt(settings: Settings, seed: int, data: Tuple[Any, Any, Any, Any]) -> Dict[str, float]:
    """Loss on unseen data, share of missed positives, and thousands of nodes; the same for the same arguments."""
    from sklearn.decomposition import PCA
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.metrics import log_loss

    rows, unseen_rows, labels, unseen_labels = data
    components = PCA(settings["components"], random_state=seed).fit(rows)
    model = HistGradientBoostingClassifier(
        learning_rate=settings["rate"], max_iter=settings["rounds"], max_leaf_nodes=settings["leaves"],
        max_depth=settings["depth"], min_samples_leaf=settings["least"], l2_regularization=settings["l2"],
        max_bins=settings["bins"], max_features=settings["share"], early_stopping=False, random_state=seed,
        class_weight=None if settings["weights"] == "none" else "balanced",
    )  # fmt: skip
    model.fit(components.transform(rows), labels)
    likely = model.predict_proba(components.transform(unseen_rows))[:, 1]
    nodes = sum(predictor.nodes.size for round_ in model._predictors for predictor in round_)
    missed = float(np.mean(likely[unseen_labels == 1]))
    return {"loss": float(log_loss(unseen_labels, likely)), "missed": 1.0 - missed, "knodes": nodes / 1000}


def _problem(seed: int) -> Problem:
    data, values_by_settings = _data(seed), {}

    def truth(settings: Settings) -> Dict[str, float]:
        key = json.dumps(settings, sort_keys=True, default=np.generic.item)
        if key not in values_by_settings:
            values_by_settings[key] = learnt(settings, seed, data)
        return values_by_settings[key]

    dimensions = space()
    random = np.random.RandomState(seed)
    drawn = [{side.name: side.rvs(1, random)[0] for side in dimensions} for _ in range(POINTS)]
    plain = [{name: value.item() if hasattr(value, "item") else value for name, value in one.items()} for one in drawn]
    drawn_values = [truth(settings) for settings in plain]
    scale = {
        metric: max(float(np.std([values[metric] for values in drawn_values])), 1e-6) for metric in drawn_values[0]
    }

    at_start = truth(START)
    limits = tuple(Constraint(metric, "<=", MARGIN * at_start[metric]) for metric in ("missed", "knodes"))
    return Problem(
        f"learner {seed}", dimensions, dict(START), "loss", limits, noisy(truth, scale, NOISE), truth, scale, BUDGET
    )
