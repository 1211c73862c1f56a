"""The ``state`` of the redirect flow. Contract: GET /auth/callback."""

from __future__ import annotations

import base64
import json
import time
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accounts.signin.state import (
    InvalidState,
    PendingSignIn,
    decode_state,
    encode_state,
    is_browser_id,
    new_browser_id,
    save_pending,
    take_pending,
)
from tests.accounts.support import at_once

PENDING = PendingSignIn(
    provider="corp", redirect="https://dash.example.org/?a=~>b", verifier="v" * 43, nonce="n"
)


def now_ms() -> int:
    return int(time.time() * 1000)


def test_it_is_base64_json_of_the_four_members() -> None:
    fields = json.loads(base64.b64decode(save_pending(PENDING, browser=new_browser_id())))
    assert set(fields) == {"redirect", "ts", "nonce", "sig"}
    assert fields["redirect"] == PENDING.redirect
    assert abs(fields["ts"] - now_ms()) < 60_000


@given(st.text(st.characters(max_codepoint=127), max_size=60))
def test_both_spellings_of_base64_read_it(redirect: str) -> None:
    state = encode_state(redirect=redirect, timestamp_ms=now_ms(), nonce="x")
    assert base64.b64decode(state, validate=True) == base64.urlsafe_b64decode(state)
    assert not set(state) & set("+/-_")
    assert json.loads(base64.b64decode(state))["redirect"] == redirect
    assert decode_state(state, max_age_seconds=600) == "x"


def test_it_is_good_once_and_in_one_browser() -> None:
    browser = new_browser_id()
    state = save_pending(PENDING, browser=browser)
    for other in ("", "x", new_browser_id()):
        with pytest.raises(InvalidState):
            take_pending(state, browser=other)
    assert take_pending(state, browser=browser) == PENDING
    with pytest.raises(InvalidState):
        take_pending(state, browser=browser)


def test_of_two_at_once_exactly_one_gets_it(db: None) -> None:
    browser = new_browser_id()
    state = save_pending(PENDING, browser=browser)

    def attempt() -> bool:
        try:
            return take_pending(state, browser=browser) == PENDING
        except InvalidState:
            return False

    assert sorted(at_once([partial(attempt)] * 8)) == [False] * 7 + [True]


def tampered(**changes: Any) -> str:
    fields = json.loads(base64.b64decode(encode_state(redirect="/", timestamp_ms=now_ms(), nonce="x")))
    return base64.b64encode(json.dumps({**fields, **changes}).encode()).decode()


@pytest.mark.parametrize(
    "state",
    [
        "",
        "x",
        "*",
        "e30=",
        "bnVsbA==",
        "W10=",
        "Ww" * 5000,
        base64.b64encode(b"[" * 9000).decode(),
        base64.b64encode(b"\xff").decode(),
        tampered(redirect="https://evil.example"),
        tampered(nonce="y"),
        tampered(nonce=7),
        tampered(ts=now_ms() + 1),
        tampered(sig=""),
        tampered(sig=None),
        encode_state(redirect="/", timestamp_ms=now_ms() - 600_001, nonce="x"),
        encode_state(redirect="/", timestamp_ms=now_ms() + 86_400_000, nonce="x"),
        "x" * 20_000,
    ],
    ids=lambda state: state[:20],
)
def test_a_malformed_forged_or_old_state_is_refused(state: str) -> None:
    with pytest.raises(InvalidState):
        decode_state(state, max_age_seconds=600)


def test_browser_ids_are_random_and_recognised() -> None:
    first, second = new_browser_id(), new_browser_id()
    assert first != second
    assert is_browser_id(first)
    assert not is_browser_id(first + "x")
    assert not is_browser_id(first[:-1] + "\n")
