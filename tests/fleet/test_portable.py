from __future__ import annotations

from pathlib import Path
from typing import Any, Dict

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from ceph_tuner.core.errors import InputError, PermissionRefused
from ceph_tuner.core.profiles.profile import Profile
from ceph_tuner.files.profile_file import plain_to_text
from ceph_tuner.fleet import portable_file
from ceph_tuner.fleet.portable import public_text, read_private_key, read_public_key, sealed, unsealed
from ceph_tuner_profiles import catalogue

ORIGIN = {"cluster": "paris", "exported": "2026-11-21T19:00:00Z"}
KEY, OTHER = (Ed25519PrivateKey.from_private_bytes(bytes([seed]) * 32) for seed in (1, 2))
TUNED = catalogue.load("tuned/lab-recovery")


def text_of(profile: Profile = TUNED, **rest: Any) -> str:
    return plain_to_text(sealed(profile, ORIGIN, **rest))


@pytest.mark.parametrize("name", catalogue.names())
def test_every_profile_comes_back_from_its_file_as_it_was(name: str) -> None:
    profile = catalogue.load(name)
    found = portable_file.from_text(text_of(profile, key=KEY), "x.yaml")
    assert (found.profile, found.origin, found.signed_by) == (profile, ORIGIN, public_text(KEY.public_key()))


@given(st.text(max_size=40), st.floats(0, 1), st.integers(1, 1000))
def test_whatever_is_in_a_profile_the_digest_holds_after_reading(words: str, share: float, weight: int) -> None:
    document = TUNED.to_dict()
    document["settings"] = {**document["settings"], "osd_mclock_scheduler_client_wgt": weight}
    profile = Profile.from_dict({**document, "description": words, "evidence": [{"a": share, "b": [words]}]})
    found = portable_file.from_text(text_of(profile), "x.yaml")
    assert found.profile == profile
    assert found.signed_by == ""


def leaves(data: Any, keys: tuple = ()) -> Any:
    if isinstance(data, (dict, list)):
        for key, value in data.items() if isinstance(data, dict) else enumerate(data):
            yield from leaves(value, (*keys, key))
    else:
        yield keys


def changed(document: Any, keys: tuple) -> Any:
    inner = document
    for key in keys[:-1]:
        inner = inner[key]
    value = inner[keys[-1]]
    if isinstance(value, bool):
        inner[keys[-1]] = not value
    elif isinstance(value, (int, float)):
        inner[keys[-1]] = value + 1
    else:
        inner[keys[-1]] = f"{value}x"
    return document


@pytest.mark.parametrize("keys", list(leaves(sealed(TUNED, ORIGIN, KEY))), ids=lambda keys: ".".join(map(str, keys)))
def test_a_change_of_any_single_value_is_refused(keys: tuple) -> None:
    document = changed(portable_plain(), keys)
    with pytest.raises(InputError):
        portable_file.from_text(plain_to_text(document), "x.yaml")


def portable_plain() -> Dict[str, Any]:
    import copy

    return copy.deepcopy(sealed(TUNED, ORIGIN, KEY))


def test_a_changed_setting_within_its_bounds_is_told_as_a_changed_file() -> None:
    text = text_of().replace("osd_mclock_scheduler_client_wgt: ", "osd_mclock_scheduler_client_wgt: 1")
    with pytest.raises(InputError, match=r"x\.yaml:\d+ digest: found a digest of something else: the file was changed"):
        portable_file.from_text(text, "x.yaml")


def test_bounds_are_checked_though_digest_and_signature_fit() -> None:
    document = portable_plain()
    document["profile"]["settings"]["osd_mclock_scheduler_client_res"] = 1.5
    with pytest.raises(InputError, match=r"x\.yaml:\d+ profile\.settings\.osd_mclock_scheduler_client_res"):
        portable_file.from_text(plain_to_text(document), "x.yaml")


def test_layout_and_comments_do_not_count() -> None:
    text = "# from paris\n" + text_of().replace("cluster: paris", "cluster:    'paris'   # ours")
    assert portable_file.from_text(text, "x.yaml").profile == TUNED


def test_a_new_digest_over_changed_settings_does_not_fit_the_signature() -> None:
    document = portable_plain()
    document["profile"]["settings"]["osd_mclock_scheduler_client_wgt"] += 1
    forged = sealed(Profile.from_dict(document["profile"]), ORIGIN)
    with pytest.raises(InputError, match="a signature that does not fit"):
        unsealed({**forged, "signature": document["signature"]})


def test_only_the_trusted_key_s_signature_is_taken_when_one_is_named() -> None:
    trusted = KEY.public_key()
    assert unsealed(sealed(TUNED, ORIGIN, KEY), signer_key=trusted).profile == TUNED
    for document, words in [
        (sealed(TUNED, ORIGIN), "found no signature"),
        (sealed(TUNED, ORIGIN, OTHER), "found a signature by"),
    ]:
        with pytest.raises(InputError, match=words):
            unsealed(document, signer_key=trusted)
    stolen = {**sealed(TUNED, ORIGIN, OTHER)}
    stolen["signature"] = {**stolen["signature"], "key": public_text(trusted)}
    with pytest.raises(InputError, match="does not fit"):
        unsealed(stolen, signer_key=trusted)


def test_a_number_that_is_none_is_refused() -> None:
    text = text_of().replace("evidence:\n", "evidence:\n  - {a: .nan}\n")
    assert text != text_of()
    with pytest.raises(InputError, match=r"x\.yaml:\d+ "):
        portable_file.from_text(text, "x.yaml")


def test_another_schema_is_refused() -> None:
    with pytest.raises(InputError, match="schema: found 2, expected 1"):
        unsealed({**sealed(TUNED, ORIGIN), "schema": 2})


def test_keys_come_from_pem_files_and_a_private_one_is_ones_own(tmp_path: Path) -> None:
    private, public = tmp_path / "key.pem", tmp_path / "key.pub"
    form, none = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    private.write_bytes(KEY.private_bytes(serialization.Encoding.PEM, form, none))
    private.chmod(0o600)
    public.write_bytes(
        KEY.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )
    assert public_text(read_private_key(private).public_key()) == public_text(read_public_key(public))
    private.chmod(0o644)
    with pytest.raises(PermissionRefused, match="chmod 600"):
        read_private_key(private)
    private.chmod(0o600)
    other = rsa.generate_private_key(65537, 2048)
    private.write_bytes(other.private_bytes(serialization.Encoding.PEM, form, none))
    for wrong in (lambda: read_private_key(private), lambda: read_public_key(private)):
        with pytest.raises(InputError, match="of Ed25519"):
            wrong()
    with pytest.raises(InputError, match="no such file"):
        read_public_key(tmp_path / "none")
