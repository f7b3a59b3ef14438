"""Problems that optimisers are compared on: they begin safe, a seed gives the same one, formulas are the published."""

from itertools import islice

import engineering_suite
import numpy as np
import pytest
import sampled_suite

import search

pytestmark = pytest.mark.slow

# its problems train a learner for each point
SUITES = ("sampled", "disturbed", "bent", "engineering", pytest.param("learner", marks=pytest.mark.long))


def first(suite, seed, count=3):
    return list(islice(search.SUITES[suite]([seed]), count))


@pytest.mark.parametrize("suite", SUITES)
def test_a_start_keeps_every_constraint_and_lies_in_the_space(suite):
    for problem in first(suite, 1):
        assert problem.beyond(problem.start) <= 0
        assert not problem.violated(problem.start)
        point = problem.cube.encode(problem.start)
        assert problem.truth(problem.cube.decode(point)) == pytest.approx(problem.truth(problem.start))


@pytest.mark.parametrize("suite", SUITES)
def test_a_seed_is_one_problem_and_another_seed_another(suite):
    one, again, other = first(suite, 1, 1)[0], first(suite, 1, 1)[0], first(suite, 2, 1)[0]
    assert one.name == again.name != other.name
    assert one.truth(one.start) == again.truth(again.start) != other.truth(other.start)
    assert one.measured(one.start, 3, 7) == again.measured(again.start, 3, 7) != one.measured(one.start, 4, 7)


def test_what_is_kept_aside_is_run_only_where_it_is_named():
    assert set(search.KEPT_ASIDE) < set(search.SUITES)
    assert set(search.SEEDS) == set(search.SUITES)


OPTIMA = {
    "truss": ((0.788675, 0.408248), 263.896),
    "spring": ((0.051689, 0.356718, 11.288966), 0.012665),
    "vessel": ((0.778169, 0.384649, 40.3196, 200.0), 5885.33),
    "welded beam": ((0.205730, 3.470489, 9.036624, 0.205730), 1.72485),
    "reducer": ((3.5, 0.7, 17.0, 7.3, 7.71532, 3.350215, 5.286654), 2994.47),
    "cantilever": ((6.016016, 5.309174, 4.494330, 3.501475, 2.152665), 1.33996),
    "column": ((5.4512, 0.2920), 26.50),
    "I-beam": ((80.0, 50.0, 0.9, 2.32179), 0.0130741),
    "brake": ((70.0, 90.0, 1.0, 810.0, 3.0), 0.313657),
    "car": ((0.5, 1.11643, 0.5, 1.30208, 0.5, 1.5, 0.5, 0.345, 0.192, -19.54935, -0.00431), 22.84),
}
"""Design -> the best that the literature knows, and its objective."""


@pytest.mark.parametrize(
    "design", [one for one in engineering_suite.DESIGNS if one.name in OPTIMA], ids=lambda d: d.name
)
def test_the_published_optimum_of_a_design_has_its_value_and_lies_at_its_bounds(design):
    point, value = OPTIMA[design.name]
    objective, constraints = design.values(*point)
    assert objective == pytest.approx(value, rel=2e-3)
    assert -0.05 < max(constraints) < 1e-3


@pytest.mark.parametrize(("tails", "largest"), [("normal", 4.5), ("heavy", 40.0), ("outliers", 40.0)])
def test_noise_is_of_unit_deviation_but_for_outliers(tails, largest):
    rng = np.random.default_rng(5)
    errors = np.array([sampled_suite._errors(tails, 2, rng) for _ in range(4000)])
    assert np.median(np.abs(errors)) == pytest.approx({"heavy": 0.44}.get(tails, 0.68), rel=0.15)
    assert np.abs(errors).max() < largest
    assert (np.abs(errors).max() > 4.5) == (tails != "normal")


def test_drift_moves_what_is_measured_and_not_what_is_true():
    problem = next(
        one for seed in range(1, 9) for one in sampled_suite.disturbed([seed]) if one.drift(3) != one.drift(9)
    )
    assert max(abs(problem.drift(trial)) for trial in range(40)) <= 1.5 * max(sampled_suite.NOISE)
    assert problem.truth(problem.start) == problem.truth(problem.start)
