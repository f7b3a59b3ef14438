from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, Dict

import numpy as np
import pytest

from ceph_tuner.core.errors import InputError
from ceph_tuner.core.knobs.releases import RELEASES, TENTACLE
from ceph_tuner.files import fit_file
from ceph_tuner.twin import description
from ceph_tuner.twin.discrepancy import Discrepancy, Unexplained
from ceph_tuner.twin.fit import DETERMINED, SILENT, Fit, FittedParameter
from ceph_tuner.twin.model import (
    ClientStream,
    ClusterModel,
    DeleteWork,
    Device,
    OsdModel,
    Pool,
    RecoveryWork,
    ScrubWork,
    SnaptrimWork,
)

OSD = OsdModel(Device(1075, 60 << 20, shared=False, slice_s=0.1), capacity_iops=812, shards=1)
CLIENT = ClusterModel(3, OSD, (Pool("client", 32),), (ClientStream("client", rate=250.0),), version=(20, 2, 4))
BUSY = ClusterModel(
    3,
    OSD,
    (Pool("client", 32), Pool("ec", 16, 3, k=2)),
    (ClientStream("client", rate=250.0), ClientStream("ec", depth=7, read_share=0.4)),
    (RecoveryWork("client", 500, target=2),),
    (ScrubWork("ec", 100, deep=False),),
    (SnaptrimWork("client", 70),),
    (DeleteWork("client", 11, start_s=2.0),),
    version=(20, 2, 4),
)


def some_fit() -> Fit:
    parameters = (
        FittedParameter("osd.kv_ios", "1", "device writes", 2.9, 0.11, 2.5, 0.4, DETERMINED, 0.8, 8.0),
        FittedParameter("network_s", "s", "one way", 1.6e-4, 0.48, 1.5e-4, 0.5, SILENT, 1e-5, 1e-3),
    )
    covariance = np.asarray([[0.0121, -0.01], [-0.01, 0.2304]])
    left = Unexplained(17, 1.4, 0.06, -0.02, 0.08, 5.0, "mixed fit-2", 0.31)
    return Fit(
        {"client": CLIENT, "mixed": BUSY},
        parameters,
        covariance,
        Discrepancy({"client.mean_ms": left}, 1.4, 4),
        ("the windows say nothing about: network_s (the described values stay)",),
        dict(TENTACLE.profiles["balanced"]),
        ({"scenario": "client", "label": "in-force", "measured": {"client.iops": 249.0}},),
        {"ceph": "20.2.4", "fitted": "2026-11-21"},
    )


def test_a_fit_survives_being_written_and_read(tmp_path: Path) -> None:
    path, fit = tmp_path / "fit.json", some_fit()
    fit_file.write(path, fit)
    read = fit_file.read(path)
    assert read.models == fit.models
    assert read.parameters == fit.parameters
    assert np.array_equal(read.covariance, fit.covariance)
    assert read.discrepancy == fit.discrepancy
    assert (read.notes, read.settings, read.evidence, read.origin) == (
        fit.notes,
        fit.settings,
        fit.evidence,
        dict(fit.origin),
    )
    assert read.draws(5) == fit.draws(5)


def test_a_fit_that_is_there_is_not_replaced_unless_told(tmp_path: Path) -> None:
    path = tmp_path / "fit.json"
    fit_file.write(path, some_fit())
    with pytest.raises(InputError, match="a file of that name"):
        fit_file.write(path, some_fit())
    fit_file.write(path, some_fit(), force=True)


@pytest.mark.parametrize("release", RELEASES.values(), ids=lambda release: release.name)
def test_every_part_of_a_model_survives_being_described(release: Any) -> None:
    osd = replace(OSD, db=Device(20_000, 4e8), message_cpu_s=1e-4)
    more = {"osd": osd, "hosts": 3, "processors": 4, "clients": (ClientStream("ec", depth=7, cpu_s=2e-4),)}
    model = ClusterModel(**{**vars(BUSY), "release": release, "version": release.newest, **more})
    assert description.from_dict(json.loads(json.dumps(description.to_dict(model)))) == model


def test_draws_stay_within_the_fits_bounds_and_follow_its_covariance() -> None:
    drawn = some_fit().draws(2000, seed=4)
    ios = np.log([values["osd.kv_ios"] for values in drawn])
    assert np.exp(ios.mean()) == pytest.approx(2.9, rel=0.02)
    assert ios.std() == pytest.approx(0.11, rel=0.1)
    assert all(1e-5 <= values["network_s"] <= 1e-3 for values in drawn)
    assert some_fit().draws(3, seed=4) == drawn[:3]


def damaged(**changes: Any) -> str:
    document: Dict[str, Any] = {**json.loads(fit_file.to_text(some_fit())), **changes}
    return json.dumps({key: value for key, value in document.items() if value is not ...}, indent=1)


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"schema": 2}, r"fit.json:2 schema: found 2, expected 1, the version"),
        ({"what": "profile"}, r"fit.json:3 what: found 'profile'"),
        ({"discrepancy": ...}, r"no key 'discrepancy'"),
        ({"covariance": [[1.0]]}, r"covariance: found 1 rows of 1, expected 2 rows of 2"),
        ({"covariance": [[1.0, 2.0], [2.0, 1.0]]}, r"found no covariance, expected a symmetric matrix"),
        ({"covariance": [[1.0], [2.0, 1.0]]}, r"expected a square of numbers"),
        ({"scenarios": {}}, r"found no scenario, expected at least one"),
        ({"scenarios": {"client": {"pools": [{"name": "a", "pgz": 3}]}}}, r"pools.0.pgz: found unknown key 'pgz'"),
        ({"scenarios": {"client": {"pools": 3}}}, r"scenarios.client.pools: found a int, expected a list"),
        ({"cluster": {"osds": 0, "release": "tentacle", "osd": {}}}, r"found .*iops.*, expected what a Device takes"),
        ({"cluster": {"osds": 3, "release": "atlantis"}}, r"cluster.release: found 'atlantis'"),
        ({"discrepancy": {"chi_square": 1.0, "settings": 1, "metrics": {"a": {}}}}, r"expected what `twin fit` writes"),
    ],
)
def test_a_damaged_fit_is_refused_with_the_place(changes: Dict[str, Any], fault: str) -> None:
    with pytest.raises(InputError, match=fault):
        fit_file.from_text(damaged(**changes))


def test_a_fit_of_no_parameter_can_be_read() -> None:
    fit = fit_file.from_text(damaged(parameters=[], covariance=[]))
    assert (fit.parameters, fit.covariance.shape) == ((), (0, 0))


@pytest.mark.parametrize(
    ("key", "value", "fault"),
    [
        ("name", "osd.magic", r"parameters.0.name: found 'osd.magic', expected one of"),
        ("value", 0, r"parameters.0.value: found 0, expected a number above 0"),
        ("deviation", "wide", r"parameters.0.deviation: found 'wide'"),
        ("colour", "red", r"unexpected keyword argument 'colour'"),
    ],
)
def test_a_damaged_parameter_is_refused_with_the_place(key: str, value: Any, fault: str) -> None:
    document = json.loads(fit_file.to_text(some_fit()))
    document["parameters"][0][key] = value
    with pytest.raises(InputError, match=fault):
        fit_file.from_text(json.dumps(document, indent=1))


def test_the_scenario_may_be_left_out_only_where_there_is_one() -> None:
    fit = some_fit()
    assert fit.model("mixed") is BUSY
    with pytest.raises(InputError, match="--scenario: found nothing, expected one of client, mixed"):
        fit.model(None)
    with pytest.raises(InputError, match="found 'scrub', expected one of client, mixed"):
        fit.model("scrub")
    assert Fit({"only": CLIENT}, (), np.zeros((0, 0)), Discrepancy({}, 0.0, 0)).model(None) is CLIENT
