from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, List

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from ceph_tuner.core.errors import InputError
from ceph_tuner.core.knobs.releases import TENTACLE
from ceph_tuner.core.profiles.profile import Profile
from ceph_tuner.files import profile_file
from ceph_tuner.fleet import fleet_file, portable_file
from ceph_tuner.fleet.portable import Portable, public_text, sealed, unsealed
from ceph_tuner.fleet.trust import Signer, Trust, check_newest, exported, remember
from ceph_tuner_cli import profiles
from twins import small_twin

PROFILE = Profile("tuned", TENTACLE, {"osd_max_scrubs": 2})
OPS, OTHER = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()
NOW = 1.8e9


def document(key: Any = OPS, cluster: str = "paris", at: str = "2026-11-21T19:00:00Z") -> Any:
    return sealed(PROFILE, {"cluster": cluster, "exported": at}, key)


def portable(key: Any = OPS, cluster: str = "paris", at: str = "2026-11-21T19:00:00Z") -> Portable:
    return unsealed(document(key, cluster, at))


@pytest.fixture
def signer(tmp_path: Path) -> Signer:
    pem = OPS.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    (tmp_path / "ops.pub").write_bytes(pem)
    return Signer("ops", str(tmp_path / "ops.pub"), frozenset({"paris", "lyon"}), NOW + 60.0)


def refused(trust: Trust, what: Portable, now: float = NOW) -> str:
    with pytest.raises(InputError) as refusal:
        trust.check(what, "x.yaml", now)
    assert str(refusal.value).startswith("x.yaml: found ")
    return str(refusal.value)


def test_a_profile_is_taken_by_its_signer_its_origin_and_the_day(signer: Signer) -> None:
    trust = Trust((signer,))
    trust.check(portable(), "x.yaml", NOW)
    trust.check(portable(cluster="lyon"), "x.yaml", NOW)
    assert "no signature, expected one by ops" in refused(trust, portable(key=None))
    assert f"a signature by {public_text(OTHER.public_key())}" in refused(trust, portable(key=OTHER))
    words = refused(trust, portable(cluster="berlin"))
    assert "a profile of 'berlin', signed by ops, expected one of lyon, paris" in words
    assert "the key ops, which held until 2027-01-15" in refused(trust, portable(), NOW + 60.0)
    Trust((replace(signer, clusters=frozenset(), until=None),)).check(portable(cluster="berlin"), "x.yaml", 1e12)
    assert "nobody" in refused(Trust(()), portable())


def test_what_is_revoked_is_taken_no_more(signer: Signer) -> None:
    for mark in (public_text(OPS.public_key()), portable().digest):
        assert "which is revoked" in refused(Trust((signer,), frozenset({mark})), portable())
    unsigned = portable(key=None)
    assert "which is revoked" in refused(Trust((signer,), frozenset({unsigned.digest})), unsigned)


def test_an_old_signed_profile_does_not_come_back_over_a_newer_one() -> None:
    store = small_twin().store
    old, new = portable(at="2026-01-01T00:00:00Z"), portable(at="2026-02-01T00:00:00Z")
    for first in (old, new, new):
        check_newest(store, first, NOW)
        remember(store, first)
    with pytest.raises(InputError, match=r"a signed profile of 2026-01-01.*newer one.*--older"):
        check_newest(store, old, NOW)
    check_newest(store, old, NOW, older=True)
    # of another origin or signer, or of nobody's, it is another matter
    check_newest(store, portable(cluster="lyon", at="2026-01-01T00:00:00Z"), NOW)
    check_newest(store, portable(key=OTHER, at="2026-01-01T00:00:00Z"), NOW)
    check_newest(store, portable(key=None, at="whenever"), NOW)
    with pytest.raises(InputError, match=r"origin\.exported: found 'whenever'"):
        exported(portable(at="whenever"))


def test_a_signed_profile_from_the_future_is_refused_and_makes_no_later_one_old() -> None:
    store = small_twin().store
    ahead = portable(at="2999-01-01T00:00:00Z")
    with pytest.raises(InputError, match=r"2999-01-01.*in the future.*right clock"):
        check_newest(store, ahead, NOW)
    check_newest(store, ahead, NOW, older=True)
    remember(store, ahead)
    check_newest(store, portable(), NOW)
    # clocks of hosts differ
    check_newest(store, portable(at="2027-01-15T20:00:00Z"), NOW)


@pytest.mark.parametrize(
    "stored",
    ["", "hello", "{}", '{"exported": 5}', "[" * 9999, '{"exported": "9"}', '{"exported": "9999-12-31T23:59:59Z"}'],
)
def test_what_anybody_wrote_there_stops_no_profile(stored: str) -> None:
    store = small_twin().store
    remember(store, portable())
    (key,) = store.keys("trust/")
    store.set(key, stored)
    check_newest(store, portable(at="2020-01-01T00:00:00Z"), NOW)


FLEET = """\
schema: 1
clusters:
  paris: {lab: x}
trust:
  keys:
    ops: {key: ops.pub, clusters: [paris], until: "2027-01-15"}
  revoked: ["sha256:1"]
"""


def test_the_policy_stands_in_the_fleet_file(tmp_path: Path, signer: Signer) -> None:
    (tmp_path / "fleet.yaml").write_text(FLEET)
    trust = fleet_file.read(tmp_path / "fleet.yaml").trust
    assert trust is not None
    assert trust.signers == (Signer("ops", str(tmp_path / "ops.pub"), frozenset({"paris"}), 1799971200.0),)
    assert trust.revoked == {"sha256:1"}
    assert fleet_file.from_text(FLEET[: FLEET.index("trust")]).trust is None


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"2027-01-15"', '"soon"', r"trust\.keys\.ops\.until: found 'soon', expected a day"),
        ("key: ops.pub, ", "", r"trust\.keys\.ops"),
        ("clusters: [paris]", "cluster: paris", r"trust\.keys\.ops\.cluster: found unknown key"),
        ("revoked", "revoke", r"trust\.revoke: found unknown key"),
        ('["sha256:1"]', "[5]", r"trust\.revoked\.0"),
        ("  keys:\n    ops: {", "  keys: []\n  x: {", r"fleet\.yaml:5"),
    ],
)
def test_a_policy_with_a_fault_is_refused_with_its_line(old: str, new: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        fleet_file.from_text(FLEET.replace(old, new))


def test_apply_and_profile_import_take_from_files_what_the_policy_takes(tmp_path: Path, signer: Signer) -> None:
    fleet, plain, signed, other = (tmp_path / f"{name}.yaml" for name in ("fleet", "plain", "signed", "other"))
    fleet.write_text(FLEET.replace("2027", "2999"))
    portable_file.write(signed, document())
    portable_file.write(other, document(key=OTHER))
    profile_file.write(plain, PROFILE)
    assert profiles.read_vouched(str(signed), fleet=fleet).profile == PROFILE
    assert profiles.read_vouched(str(signed)).portable is not None
    assert profiles.read_vouched(str(plain)).portable is None
    assert profiles.read_vouched("tentacle/balanced", fleet=fleet).profile.built_in
    refusals: List[str] = []
    for file in (plain, other):
        with pytest.raises(InputError) as refusal:
            profiles.read_vouched(str(file), fleet=fleet)
        refusals.append(str(refusal.value))
    assert "digest" in refusals[0] or "unknown key" in refusals[0] or "no key" in refusals[0]
    assert "a signature by" in refusals[1]
