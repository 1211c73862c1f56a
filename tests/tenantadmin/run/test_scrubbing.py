"""No token leaves by Sentry or OpenTelemetry."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tenantadmin.run.telemetry import SpanScrubber, scrub_event, scrub_text

PAT = f"tas_pat_{'x' * 43}"
JWT = "eyJhbGciOiJFUzI1NiIsImtpZCI6.eyJzdWIiOiJhZGEifQ.c2lnbmF0dXJl"


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("GET /auth/magic-link/verify?t=secret HTTP/1.1", "GET /auth/magic-link/verify?[removed] HTTP/1.1"),
        ("https://a.example/dash?access_token=x#y", "https://a.example/dash?[removed]"),
        ("https://a.example/#access_token=x", "https://a.example/?[removed]"),
        (f"Bearer {JWT}, {PAT}", "Bearer [removed], [removed]"),
        (f"refused tas_refresh_{'y' * 43}.", "refused [removed]."),
        ("Is it 5 or 6? Nobody knows.", "Is it 5 or 6? Nobody knows."),
        ("SELECT a / b FROM t WHERE c = ?", "SELECT a / b FROM t WHERE c = ?"),
        ("/tenants/7/summaries/2026", "/tenants/7/summaries/2026"),
    ],
)
def test_a_text(text: str, clean: str) -> None:
    assert scrub_text(text) == clean


def test_an_event_of_sentry() -> None:
    event = {
        "request": {
            "url": "https://a.example/auth/callback?code=secret",
            "query_string": "code=secret",
            "headers": {"Authorization": "Bearer secret", "Accept": "*/*"},
            "cookies": {"session": "secret"},
        },
        "breadcrumbs": {"values": [{"data": {"url": "/x?t=secret", "http.query": "t=secret"}}]},
        "exception": {"values": [{"value": f"no {PAT}", "stacktrace": {"frames": [{"lineno": 7}]}}]},
        "spans": ({"description": "GET /x?t=secret"},),
    }
    clean = scrub_event(event, {})
    assert "secret" not in str(clean)
    assert PAT not in str(clean)
    assert clean["request"]["headers"]["Accept"] == "*/*"
    assert clean["request"]["url"] == "https://a.example/auth/callback?[removed]"
    assert clean["exception"]["values"][0]["stacktrace"] == {"frames": [{"lineno": 7}]}


def test_a_span_of_opentelemetry() -> None:
    attributes: dict[str, Any] = {
        "http.target": "/auth/magic-link/verify?t=secret",
        "url.query": "t=secret",
        "http.method": "GET",
        "http.status_code": 200,
    }
    span = SimpleNamespace(attributes=attributes, set_attribute=attributes.__setitem__)
    SpanScrubber().on_start(span)
    assert attributes == {
        "http.target": "/auth/magic-link/verify?[removed]",
        "url.query": "[removed]",
        "http.method": "GET",
        "http.status_code": 200,
    }
