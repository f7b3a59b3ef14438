"""Where profiles of other clusters come from."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ceph_tuner.core.errors import InputError
from ceph_tuner.core.knobs.cost import Hardware
from ceph_tuner.core.knobs.releases import TENTACLE
from ceph_tuner.core.profiles.profile import Profile
from ceph_tuner.files import profile_file
from ceph_tuner.search.space import space_for
from ceph_tuner.search.transfer import Elsewhere, Here
from ceph_tuner_cli.elsewhere import PREFIX, gathered, name_of, said_of
from ceph_tuner_profiles import catalogue
from monitors import MemoryStore

BALANCED = TENTACLE.profiles["balanced"]


def profile(name: str) -> Profile:
    return Profile.make(name, TENTACLE, TENTACLE.profiles["high_client_ops"])


def test_files_come_first_then_what_the_cluster_keeps_then_what_we_ship_and_what_is_broken_is_left_out(
    tmp_path: Path,
) -> None:
    path = tmp_path / "given.yaml"
    profile_file.write(path, profile("given"), False)
    store = MemoryStore()
    store.set(f"{PREFIX}kept", json.dumps(profile("kept").to_dict()))
    store.set(f"{PREFIX}broken", "{")
    store.set(f"{PREFIX}later", json.dumps({"schema": 99}))
    shipped = [entry.name for entry in catalogue.tuned()]
    assert [entry.name for entry in gathered([path], store)] == ["given", "kept", *shipped]
    assert [entry.name for entry in gathered([])] == shipped
    path.write_text("schema: 99\n", encoding="utf-8")
    with pytest.raises(InputError):
        gathered([path], store)


def test_other_profiles_make_another_name() -> None:
    one, other = [profile("one")], [profile("other")]
    assert name_of(one) == name_of([profile("one")])
    assert len({name_of([]), name_of(one), name_of(other), name_of([*one, *other])}) == 4
    assert name_of([]) == ""


def test_what_we_ship_is_not_worth_a_line_where_it_is_refused() -> None:
    space = space_for(TENTACLE, ["client"], BALANCED)
    here = Here(TENTACLE, Hardware(1e6, 1e10, 8, "nvme"), 9, frozenset({"client"}))
    elsewhere = Elsewhere([profile("given"), *catalogue.tuned()], here, space)
    assert said_of(elsewhere) == []
    assert elsewhere.judge({}) == []
    assert said_of(elsewhere) == ["Profile given is refused: it does not say on which hardware it was found."]
    assert said_of(None) == []
