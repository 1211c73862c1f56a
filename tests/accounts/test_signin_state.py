"""The ``state`` of the redirect flow. Contract: GET /auth/callback."""

from __future__ import annotations

import base64
import json
import time
from functools import partial
from typing import Any
from urllib.parse import urljoin, urlsplit

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from accounts.signin.redirects import resolve_redirect, with_parameters
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
from tenantadmin.lib.core.hosts import origin_of
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


DASHBOARD = "https://dash.example.org"
ALLOWED = ("https://app.example.org", "http://localhost:3000", "other.example.org:8443")

TRICKS = [
    "//evil.example",
    "///evil.example",
    "////evil.example",
    "//evil.example/%2f..",
    "/\\evil.example",
    "\\/evil.example",
    "\\\\evil.example",
    "\\evil.example",
    "/\\/evil.example",
    "/\t/evil.example",
    "/\n/evil.example",
    "/\r/evil.example",
    "\t//evil.example",
    " //evil.example",
    "//evil.example ",
    "\x00//evil.example",
    "/%09/evil.example",
    "/%2f/evil.example",
    "/%2F%2Fevil.example",
    "/%5cevil.example",
    "/%5C%5Cevil.example",
    "/%00/evil.example",
    "/.//evil.example",
    "/././/evil.example",
    "/a/..//evil.example",
    "/../%2fevil.example",
    "/%2e//evil.example",
    "/a/%2E%2e//evil.example",
    "/%0d%0aLocation:%20https://evil.example",
    "/a\r\nSet-Cookie: x=1",
    "https://evil.example",
    "HTTPS://EVIL.EXAMPLE",
    "http://app.example.org",
    "https://app.example.org:444",
    "https://app.example.org:443x",
    "https://app.example.org:",
    "https://app.example.org:99999999",
    "https://app.example.org.evil.example",
    "https://app.example.org.",
    "https://evil.example/app.example.org",
    "https://evil.example?app.example.org",
    "https://evil.example#app.example.org",
    "https://evil.example\\@app.example.org",
    "https://evil.example\\.app.example.org",
    "https://app.example.org@evil.example",
    "https://app.example.org:443@evil.example",
    "https://app.example.org%40evil.example",
    "https://user:pass@app.example.org",
    "https://@app.example.org",
    "https://app.example.org\\evil.example",
    "https://app.example.org%2eevil.example",
    "https://app.example.org%00.evil.example",
    "https://app.example.org。evil.example",
    "https://аpp.example.org",
    "https://app.example.org\u3002",
    "https://ａpp.example.org",
    "https://[app.example.org]",
    "https://[::1",
    "https:app.example.org",
    "https:/app.example.org",
    "https:///app.example.org",
    "https:\\\\app.example.org",
    "https;//app.example.org",
    "://app.example.org",
    "javascript:alert(1)",
    "JavaScript:alert(1)",
    "java\nscript:alert(1)",
    "javascript://app.example.org/%0aalert(1)",
    "data:text/html,<script>alert(1)</script>",
    "vbscript:msgbox(1)",
    "file:///etc/passwd",
    "ftp://app.example.org",
    "ws://app.example.org",
    "blob:https://app.example.org/x",
    "mailto:a@app.example.org",
    "app.example.org",
    "evil.example",
    ".evil.example",
    "@evil.example",
    "?//evil.example",
    "#//evil.example",
    "localhost:3000",
    "http://localhost:3001",
    "http://localhost",
    "http://localhost:3000@evil.example",
    "http://127.0.0.1:3000",
    "https://other.example.org",
    "https://app.example.org/<script>",
    'https://app.example.org/"onload=',
    "https://app.example.org/a b",
    "/ä",
    "/" + "a" * 2048,
]


def resolve(target: str, dashboard: str = DASHBOARD) -> str:
    return resolve_redirect(target, dashboard_url=dashboard, allowed=ALLOWED)


def test_the_corpus_is_large() -> None:
    assert len(set(TRICKS)) == len(TRICKS) >= 60


@pytest.mark.parametrize("target", TRICKS)
def test_a_trick_leads_to_the_dashboard(target: str) -> None:
    assert resolve(target) == DASHBOARD


@pytest.mark.parametrize(
    ("target", "address"),
    [
        ("", DASHBOARD),
        ("/", f"{DASHBOARD}/"),
        ("/reports", f"{DASHBOARD}/reports"),
        ("/reports?day=2026-11-21&x=//y#top", f"{DASHBOARD}/reports?day=2026-11-21&x=//y#top"),
        ("/a/../b", f"{DASHBOARD}/b"),
        ("/%C3%A4", f"{DASHBOARD}/%C3%A4"),
        ("/?next=https://evil.example", f"{DASHBOARD}/?next=https://evil.example"),
        ("https://dash.example.org/x", "https://dash.example.org/x"),
        ("https://app.example.org", "https://app.example.org"),
        ("https://app.example.org:443/x", "https://app.example.org:443/x"),
        ("HTTPS://App.Example.Org/X", "HTTPS://App.Example.Org/X"),
        ("http://localhost:3000/x?y=1", "http://localhost:3000/x?y=1"),
        ("https://other.example.org:8443/", "https://other.example.org:8443/"),
    ],
)
def test_allowed_redirects(target: str, address: str) -> None:
    assert resolve(target) == address


def test_paths_are_of_the_origin_of_a_dashboard_under_a_path() -> None:
    assert resolve("", "http://127.0.0.1:8000/docs") == "http://127.0.0.1:8000/docs"
    assert resolve("/", "http://127.0.0.1:8000/docs") == "http://127.0.0.1:8000/"
    assert resolve("/reports", "http://127.0.0.1:8000/docs") == "http://127.0.0.1:8000/reports"
    assert resolve("//evil.example", "http://127.0.0.1:8000/docs") == "http://127.0.0.1:8000/docs"


HOSTS = ["https:", "http://", "evil.example", "app.example.org", "localhost", "3000", "javascript:"]
MARKS = ["/", "//", "\\", ":", "@", ".", "%2f", "?", "#", "[", "]", ";", "\t", "\n", " ", "\u3002", "a"]
PIECES = st.lists(st.sampled_from(HOSTS + MARKS), max_size=8).map("".join)


@given(PIECES)
@example("http:\\\\evil.example")
def test_nothing_ever_leads_elsewhere(target: str) -> None:
    """Read as a browser does: backslashes are slashes, tabs and line breaks are nothing."""
    address = resolve(target)
    as_read = address.replace("\\", "/").replace("\t", "").replace("\n", "").replace("\r", "").strip()
    parts = urlsplit(urljoin(DASHBOARD, as_read))
    origins = {origin_of(DASHBOARD), *(origin_of(origin) for origin in ALLOWED[:2])}
    origins.add(("https", "other.example.org", 8443))
    assert origin_of(f"{parts.scheme}://{parts.netloc}") in origins
    assert "@" not in parts.netloc


@pytest.mark.parametrize(
    ("address", "result"),
    [
        ("https://a.example", "https://a.example?t=1"),
        ("https://a.example/p?x=y&t=old#f", "https://a.example/p?x=y&t=1#f"),
        ("https://a.example/?x=", "https://a.example/?x=&t=1"),
    ],
)
def test_parameters_are_added_once(address: str, result: str) -> None:
    assert with_parameters(address, {"t": "1"}) == result
