"""Where signing in may lead: a corpus of tricks. Contract: Authentication, 10."""

from __future__ import annotations

from urllib.parse import urljoin, urlsplit

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from accounts.signin.redirects import resolve_redirect, with_parameters
from tenantadmin.lib.core.hosts import origin_of

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
