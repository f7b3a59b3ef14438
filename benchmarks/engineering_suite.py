"""Engineering designs from the literature: 2 to 11 real sides, 1 to 11 curved constraints, starts drawn by seed.

Kept aside: the search is not developed on these. Formulas: Coello Coello (2000) for spring, vessel and welded beam,
Golinski (1970) for the reducer, Ray and Saini (2001) for the truss, Fleury and Braibant (1986) for the cantilever,
Rao (1996) for the column, Gold and Krishnamurty (1997) for the I-beam, Osyczka and Kundu (1995) for the brake, Jain and
Deb (2014) for the car, Thanedar and Vanderplaats (1995) for the stepped beam.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterable, Iterator, List, Sequence, Tuple

import numpy as np
from search_problem import Problem, noisy
from skopt.space import Real

from ceph_tuner.optimise.contract import Constraint, Settings

BUDGET, NOISE, POINTS = 40, 0.02, 20_000
START = 0.7
"""Of the feasible random points, how many are better than the start."""

Values = Tuple[float, List[float]]
"""The objective, and constraints of which each is to be at most 0."""


@dataclass(frozen=True)
class Design:
    """A named one, its box, and its formulas."""

    name: str
    box: Sequence[Tuple[float, float]]
    values: Callable[..., Values]


def truss(x1: float, x2: float) -> Values:
    root = math.sqrt(2)
    both = root * x1**2 + 2 * x1 * x2
    stresses = [(root * x1 + x2) / both, x2 / both, 1 / (root * x2 + x1)]
    return (2 * root * x1 + x2) * 100, [2 * stress - 2 for stress in stresses]


def spring(wire: float, coil: float, turns: float) -> Values:
    stress = (4 * coil**2 - wire * coil) / (12566 * (coil * wire**3 - wire**4)) + 1 / (5108 * wire**2) - 1
    return (turns + 2) * coil * wire**2, [
        1 - coil**3 * turns / (71785 * wire**4),
        stress,
        1 - 140.45 * wire / (coil**2 * turns),
        (wire + coil) / 1.5 - 1,
    ]


def vessel(shell: float, head: float, radius: float, length: float) -> Values:
    cost = 0.6224 * shell * radius * length + 1.7781 * head * radius**2
    cost += 3.1661 * shell**2 * length + 19.84 * shell**2 * radius
    volume = math.pi * radius**2 * length + 4 / 3 * math.pi * radius**3
    return cost, [0.0193 * radius - shell, 0.00954 * radius - head, 1 - volume / 1_296_000, length / 240 - 1]


def welded_beam(weld: float, joint: float, height: float, width: float) -> Values:
    load, span, young, shear = 6000.0, 14.0, 30e6, 12e6
    moment = load * (span + joint / 2)
    radius = math.sqrt(joint**2 / 4 + ((weld + height) / 2) ** 2)
    inertia = 2 * (math.sqrt(2) * weld * joint * (joint**2 / 12 + ((weld + height) / 2) ** 2))
    direct, bent = load / (math.sqrt(2) * weld * joint), moment * radius / inertia
    stress = math.sqrt(direct**2 + direct * bent * joint / radius + bent**2)
    buckling = 4.013 * young * math.sqrt(height**2 * width**6 / 36) / span**2
    buckling *= 1 - height / (2 * span) * math.sqrt(young / (4 * shear))
    return 1.10471 * weld**2 * joint + 0.04811 * height * width * (span + joint), [
        stress / 13_600 - 1,
        6 * load * span / (width * height**2) / 30_000 - 1,
        weld - width,
        4 * load * span**3 / (young * height**3 * width) / 0.25 - 1,
        1 - buckling / load,
    ]


def reducer(x1: float, x2: float, x3: float, x4: float, x5: float, x6: float, x7: float) -> Values:
    weight = 0.7854 * x1 * x2**2 * (3.3333 * x3**2 + 14.9334 * x3 - 43.0934) - 1.508 * x1 * (x6**2 + x7**2)
    weight += 7.4777 * (x6**3 + x7**3) + 0.7854 * (x4 * x6**2 + x5 * x7**2)
    return weight, [
        27 / (x1 * x2**2 * x3) - 1,
        397.5 / (x1 * x2**2 * x3**2) - 1,
        1.93 * x4**3 / (x2 * x3 * x6**4) - 1,
        1.93 * x5**3 / (x2 * x3 * x7**4) - 1,
        math.sqrt((745 * x4 / (x2 * x3)) ** 2 + 16.9e6) / (110 * x6**3) - 1,
        math.sqrt((745 * x5 / (x2 * x3)) ** 2 + 157.5e6) / (85 * x7**3) - 1,
        x2 * x3 / 40 - 1,
        5 * x2 / x1 - 1,
        x1 / (12 * x2) - 1,
        (1.5 * x6 + 1.9) / x4 - 1,
        (1.1 * x7 + 1.9) / x5 - 1,
    ]


def cantilever(*sides: float) -> Values:
    parts = zip((61, 37, 19, 7, 1), sides)
    return 0.0624 * sum(sides), [sum(part / side**3 for part, side in parts) - 1]


def column(diameter: float, wall: float) -> Values:
    load, strength, young, length = 2500.0, 500.0, 0.85e6, 250.0
    return 9.8 * diameter * wall + 2 * diameter, [
        load / (math.pi * diameter * wall * strength) - 1,
        8 * load * length**2 / (math.pi**3 * young * diameter * wall * (diameter**2 + wall**2)) - 1,
    ]


def i_beam(height: float, width: float, web: float, flange: float) -> Values:
    inner = height - 2 * flange
    inertia = web * inner**3 / 12 + width * flange**3 / 6 + 2 * width * flange * ((height - flange) / 2) ** 2
    across = web * inner**3 + 2 * width * flange * (4 * flange**2 + 3 * height * inner)
    along = inner * web**3 + 2 * flange * width**3
    return 5000 / inertia, [
        (2 * width * flange + web * inner) / 300 - 1,
        (18e4 * height / across + 15e3 * width / along) / 6 - 1,
    ]


def brake(inner: float, outer: float, disc: float, force: float, surfaces: float) -> Values:
    ring, cubes = outer**2 - inner**2, outer**3 - inner**3
    pressure, speed = force / (math.pi * ring), 2 * math.pi * 250 * cubes / (90 * ring) / 1000
    moment = 2 / 3 * 0.5 * force * surfaces * cubes / ring / 1000
    seconds = 55 * math.pi * 250 / (30 * (moment + 3))
    return math.pi * ring * disc * (surfaces + 1) * 7.8e-6, [
        1 - (outer - inner) / 20,
        (surfaces + 1) * (disc + 0.5) / 30 - 1,
        pressure - 1,
        pressure * speed / 10 - 1,
        speed / 10 - 1,
        seconds / 15 - 1,
        1 - moment / 60,
    ]


def car(*x: float) -> Values:
    x1, x2, x3, x4, x5, x6, x7, x8, x9, x10, x11 = x
    weight = 1.98 + 4.90 * x1 + 6.67 * x2 + 6.98 * x3 + 4.01 * x4 + 1.78 * x5 + 2.73 * x7
    abdomen = 1.16 - 0.3717 * x2 * x4 - 0.00931 * x2 * x10 - 0.484 * x3 * x9 + 0.01343 * x6 * x10
    upper = 0.261 - 0.0159 * x1 * x2 - 0.188 * x1 * x8 - 0.019 * x2 * x7 + 0.0144 * x3 * x5 + 0.0008757 * x5 * x10
    upper += 0.08045 * x6 * x9 + 0.00139 * x8 * x11 + 0.00001575 * x10 * x11
    middle = 0.214 + 0.00817 * x5 - 0.131 * x1 * x8 - 0.0704 * x1 * x9 + 0.03099 * x2 * x6 - 0.018 * x2 * x7
    middle += 0.0208 * x3 * x8 + 0.121 * x3 * x9 - 0.00364 * x5 * x6 + 0.0007715 * x5 * x10
    middle += -0.0005354 * x6 * x10 + 0.00121 * x8 * x11
    lower = 0.74 - 0.61 * x2 - 0.163 * x3 * x8 + 0.001232 * x3 * x10 - 0.166 * x7 * x9 + 0.227 * x2**2
    upper_rib = (
        28.98 + 3.818 * x3 - 4.2 * x1 * x2 + 0.0207 * x5 * x10 + 6.63 * x6 * x9 - 7.7 * x7 * x8 + 0.32 * x9 * x10
    )
    middle_rib = 33.86 + 2.95 * x3 + 0.1792 * x10 - 5.057 * x1 * x2 - 11 * x2 * x8 - 0.0215 * x5 * x10
    middle_rib += -9.98 * x7 * x8 + 22 * x8 * x9
    lower_rib = 46.36 - 9.9 * x2 - 12.9 * x1 * x8 + 0.1107 * x3 * x10
    force = 4.72 - 0.5 * x4 - 0.19 * x2 * x3 - 0.0122 * x4 * x10 + 0.009325 * x6 * x10 + 0.000191 * x11**2
    pillar = 10.58 - 0.674 * x1 * x2 - 1.95 * x2 * x8 + 0.02054 * x3 * x10 - 0.0198 * x4 * x10 + 0.028 * x6 * x10
    door = 16.45 - 0.489 * x3 * x7 - 0.843 * x5 * x6 + 0.0432 * x9 * x10 - 0.0556 * x9 * x11 - 0.000786 * x11**2
    responses = (abdomen, upper, middle, lower, upper_rib, middle_rib, lower_rib, force, pillar, door)
    bounds = (1, 0.32, 0.32, 0.32, 32, 32, 32, 4, 9.9, 15.7)
    return weight, [value / bound - 1 for value, bound in zip(responses, bounds)]


def stepped_beam(*sides: float) -> Values:
    load, young, part = 50_000.0, 2e7, 100.0
    widths, heights = sides[:5], sides[5:]
    stresses = [6 * load * part * (5 - n) / (b * h**2) for n, (b, h) in enumerate(zip(widths, heights))]
    bend = load * part**3 / (3 * young)
    bend *= sum(12 * weight / (b * h**3) for weight, b, h in zip((61, 37, 19, 7, 1), widths, heights))
    return part * sum(b * h for b, h in zip(widths, heights)), [
        *(stress / 14_000 - 1 for stress in stresses),
        bend / 2.7 - 1,
        *(h / (20 * b) - 1 for b, h in zip(widths, heights)),
    ]


DESIGNS = (
    Design("truss", [(0.05, 1.0)] * 2, truss),
    Design("spring", [(0.05, 0.2), (0.25, 1.3), (2.0, 15.0)], spring),
    Design("vessel", [(0.5, 3.0), (0.25, 3.0), (30.0, 100.0), (50.0, 240.0)], vessel),
    Design("welded beam", [(0.1, 2.0), (0.1, 10.0), (2.0, 10.0), (0.1, 2.0)], welded_beam),
    Design("reducer", [(2.6, 3.6), (0.7, 0.8), (17.0, 28.0), (7.3, 8.3), (7.3, 8.3), (2.9, 3.9), (5.0, 5.5)], reducer),
    Design("cantilever", [(2.0, 10.0)] * 5, cantilever),
    Design("column", [(2.0, 14.0), (0.2, 0.8)], column),
    Design("I-beam", [(10.0, 80.0), (10.0, 50.0), (0.9, 5.0), (0.9, 5.0)], i_beam),
    Design("brake", [(60.0, 80.0), (90.0, 110.0), (1.0, 3.0), (600.0, 1000.0), (2.0, 9.0)], brake),
    Design("car", [(0.5, 1.5)] * 7 + [(0.192, 0.345)] * 2 + [(-30.0, 30.0)] * 2, car),
    Design("stepped beam", [(1.0, 5.0)] * 5 + [(30.0, 65.0)] * 5, stepped_beam),
)


def problems(seeds: Iterable[int]) -> Iterator[Problem]:
    """Each design once for each seed."""
    for seed in seeds:
        for number, design in enumerate(DESIGNS):
            yield _problem(design, seed, np.random.default_rng([seed, number, 3]))


def _problem(design: Design, seed: int, random: np.random.Generator) -> Problem:
    low, high = (np.array(ends, float) for ends in zip(*design.box))
    names = [f"x{side}" for side in range(len(low))]
    points = random.uniform(low, high, (POINTS, len(low)))
    drawn = [design.values(*point) for point in points]
    objective, constraints = np.array([f for f, _ in drawn]), np.array([g for _, g in drawn])
    metrics = ["f", *(f"g{number}" for number in range(constraints.shape[1]))]
    # heavy tails: the middle 90% say what is much
    spread = np.subtract(*np.percentile(np.column_stack([objective, constraints]), (95, 5), axis=0)) / 3.29
    scale = dict(zip(metrics, map(float, np.maximum(spread, 1e-9))))
    feasible = np.flatnonzero((constraints <= 0).all(axis=1))
    chosen = feasible[np.argsort(objective[feasible])][int(START * len(feasible))]
    start = dict(zip(names, map(float, points[chosen])))

    def truth(settings: Settings) -> Dict[str, float]:
        f, g = design.values(*(settings[name] for name in names))
        return dict(zip(metrics, map(float, [f, *g])))

    space: List[Any] = [Real(*ends, name=name) for name, ends in zip(names, design.box)]
    limits = tuple(Constraint(metric, "<=", 0.0) for metric in metrics[1:])
    return Problem(f"{design.name} {seed}", space, start, "f", limits, noisy(truth, scale, NOISE), truth, scale, BUDGET)
