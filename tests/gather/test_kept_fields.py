from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ceph_tuner.core.knobs.catalogue import KNOBS
from ceph_tuner.gather.kept_fields import COMMANDS, DAEMON_COMMANDS, LEFT_OUT, allowed, is_kept, kept, without_secrets
from whole_cluster import CEPHX, NEWER_CEPHX, PEM, PEM_BODY, SECRETS


def test_values_of_what_the_tuner_knows_are_kept_and_no_secrets() -> None:
    assert all(map(is_kept, KNOBS))
    assert not any(map(is_kept, SECRETS))


def test_of_the_store_only_the_tuners_own_part_is_kept() -> None:
    answer = {"mgr/tuner/slo": "x", "mgr/dashboard/crt": "y", "rgw/cert": "z", "mgr/tunerish/a": "w"}
    assert json.loads(kept(json.dumps(answer), COMMANDS["config-key dump"])) == {"mgr/tuner/slo": "x"}
    assert allowed("config-key dump", "mgr/tuner/")
    assert not allowed("config-key dump", "mgr/")
    assert not allowed("auth get", "client.admin")


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (f"key = {CEPHX}, cut", CEPHX),
        (NEWER_CEPHX, NEWER_CEPHX),
        (json.dumps(PEM)[1:-1], PEM_BODY),
        ("login failed: password=hunter2", "hunter2"),
        ("access_key: AKIA123", "AKIA123"),
        ("RGW_API_SECRET_KEY=wJal secret=abc", "abc"),
        ("https://user:hunter2@registry/", "hunter2"),
        (json.dumps({"password": "hunter2"}), "hunter2"),
        (json.dumps({"m": json.dumps({"secret_key": "hunter2"})}), "hunter2"),
        (json.dumps('registry login with password="hunter2"'), "hunter2"),
        ("token='hunter2'", "hunter2"),
        ("podman login --password hunter2 reg", "hunter2"),
    ],
)
def test_what_looks_like_a_secret_is_taken_out_of_words(text: str, left: str) -> None:
    assert left not in without_secrets(text)
    assert LEFT_OUT in without_secrets(text)


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.text()
        | st.sampled_from([CEPHX, PEM, "password: x", "a://b:c@d"])
        | st.text("password=:'\" \\-token", max_size=30),
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.dictionaries(st.text() | st.sampled_from(["password", "token="]), inner, max_size=4)
        ),
        max_leaves=20,
    ),
    st.sampled_from([*COMMANDS.values(), *DAEMON_COMMANDS.values()]),
)
def test_whatever_is_answered_what_is_kept_is_json_without_keys(value: object, keep: object) -> None:
    text = kept(json.dumps(value), keep)  # type: ignore[arg-type]
    json.loads(text)
    assert CEPHX not in text
    assert PEM_BODY not in text


@pytest.mark.parametrize(
    "beginning", ["-----BEGIN -----", "-----BEGIN ", "-----BEGIN A-----x\n", "AQ", "key=", "://a:"]
)
def test_a_text_of_nothing_but_beginnings_of_secrets_is_read_at_once(beginning: str) -> None:
    began = time.process_time()
    without_secrets(beginning * (2**18 // len(beginning)))
    assert time.process_time() - began < 1


def test_secrets_beside_a_beginning_of_another_are_taken_out() -> None:
    assert PEM_BODY not in without_secrets(f"-----BEGIN X-----\n{PEM}\n{PEM}")
    header = PEM.replace("MII", "Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC\n\nMII", 1)
    assert PEM_BODY not in without_secrets(header)


def test_an_answer_that_is_no_json_is_left_out() -> None:
    assert json.loads(kept("Error: key AQ", COMMANDS["status"])) == LEFT_OUT
