from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ceph_tuner.core.errors import InputError
from ceph_tuner.core.knobs.cost import Hardware
from ceph_tuner.core.knobs.releases import BUILT_IN_PROFILES, RELEASES, TENTACLE, nine
from ceph_tuner.core.profiles.profile import Profile
from ceph_tuner.files import profile_file, schema, yaml_document
from ceph_tuner_profiles import catalogue

MADE = Profile.make(
    "from-the-lab",
    TENTACLE,
    {**nine((0.5, 8, 0.0), (0.2, 1, 0.5), (0.05, 1, 0.3)), "osd_max_scrubs": 3},
    version="20.2.4",
    description="ümlaut: 'quotes', # no comment",
    hardware=Hardware(934.9, 62914560, 1),
    osds=3,
    slos=({"name": "night", "objectives": ["client.p95_ms <= 80 ms"]},),
    evidence=({"yes": "no", "1": [1.5, None, True], "date": "2026-01-01"},),
)
TEXT = profile_file.to_text(MADE)


def test_a_file_gives_back_the_profile_that_was_written(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    profile_file.write(path, MADE)
    assert profile_file.read(path).to_dict() == MADE.to_dict()
    with pytest.raises(InputError, match="--force"):
        profile_file.write(path, MADE)


@given(
    st.text(max_size=60),
    st.dictionaries(
        st.text(max_size=8), st.text(max_size=8) | st.floats(allow_nan=False, allow_infinity=False), max_size=3
    ),
)
def test_any_text_survives(description: str, evidence: dict[str, object]) -> None:
    made = Profile.make("x", TENTACLE, MADE.settings, description=description, evidence=(evidence,) if evidence else ())
    assert profile_file.from_text(profile_file.to_text(made), "x").to_dict() == made.to_dict()


def test_a_fault_of_a_value_names_file_line_and_key(tmp_path: Path) -> None:
    path = tmp_path / "file.yaml"
    path.write_text(TEXT.replace("osd_max_scrubs: 3", "osd_max_scrubs: 99"))
    line = 1 + path.read_text().splitlines().index("  osd_max_scrubs: 99")
    with pytest.raises(InputError) as refusal:
        profile_file.read(path)
    assert str(refusal.value) == f"{path}:{line} settings.osd_max_scrubs: found 99, expected 1 to 10"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("version: 20.2.4", "version: 20.2", r"f:5 version: found 20\.2, expected text"),
        ("release: tentacle", "releas: tentacle", "f:4 releas: found unknown key 'releas', expected one of schema"),
        ("release: tentacle\n", "", "no key 'release'"),
        ("shards: 1", "shards: one", "hardware.shards: found 'one', expected a whole number"),
        ("shards: 1", "cores: 1", "hardware.cores: found unknown key"),
        ("slos:\n- name: night", "slos:\n  name: night", "slos: found a mapping, expected a list|expected"),
        ("80 ms", "80 parsecs", r"slos\.0\.objectives\.0: found"),
        ("client_res: 0.5", "client_res: 0.9", "sum to 1.15"),
    ],
)
def test_a_fault_of_structure_names_its_line(old: str, new: str, message: str) -> None:
    assert old in TEXT
    with pytest.raises(InputError, match=message):
        profile_file.from_text(TEXT.replace(old, new), "f")


def test_the_first_fault_of_a_file_is_told() -> None:
    with pytest.raises(InputError, match=r"^f:1 schema"):
        schema.check(yaml_document.parse("schema: x\nname: 5\nrelease: 5\nsettings: []\n", "f"), schema.PROFILE)


def test_the_schema_knows_the_keys_that_the_profile_writes() -> None:
    data = MADE.to_dict()
    assert set(data) <= set(schema.PROFILE["properties"])
    assert set(data["hardware"]) <= set(schema.PROFILE["properties"]["hardware"]["properties"])


BUILT_IN = [name for name in catalogue.names() if not name.startswith("tuned/")]
TUNED = [name for name in catalogue.names() if name.startswith("tuned/")]


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_built_in_profile_is_what_the_release_says(name: str) -> None:
    profile = catalogue.load(name)
    assert name == f"{profile.release.name}/{profile.name}"
    assert profile.built_in
    assert profile.settings == profile.release.profiles[profile.name]


def test_every_built_in_profile_of_every_release_comes_along() -> None:
    assert set(BUILT_IN) == {f"{release}/{name}" for release in RELEASES for name in BUILT_IN_PROFILES}
    assert len(catalogue.every(TENTACLE)) == len(BUILT_IN_PROFILES)


@pytest.mark.parametrize("name", TUNED)
def test_a_tuned_profile_comes_with_its_hardware_objectives_and_evidence(name: str) -> None:
    profile = catalogue.load(name)
    assert name == f"tuned/{profile.name}"
    assert not profile.built_in
    assert profile.hardware is not None
    assert profile.slos
    assert "measured" in profile.evidence[0]
    assert all(verdict.endswith(": met") for verdict in profile.evidence[0]["verdicts"])


def test_a_profile_that_does_not_come_along_is_answered_with_those_that_do() -> None:
    assert catalogue.load("balanced", TENTACLE).release is TENTACLE
    with pytest.raises(InputError, match="reef/balanced"):
        catalogue.load("balanced")
    with pytest.raises(InputError, match="tentacle/balanced"):
        catalogue.load("tentacle/balance")
