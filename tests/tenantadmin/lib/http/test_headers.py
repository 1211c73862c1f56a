"""Tests of the security headers of pages and of the API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.conf import settings as django_settings

if TYPE_CHECKING:
    from django.test import Client

pytestmark = pytest.mark.django_db

POLICY = {
    "default-src 'none'",
    "style-src 'self'",
    "img-src 'self' data:",
    "font-src 'self'",
    "connect-src 'self'",
    "form-action 'self'",
    "frame-ancestors 'none'",
    "base-uri 'none'",
}
EVERYWHERE = {
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "X-Frame-Options": "DENY",
}
ONLY_PAGES = ("Content-Security-Policy", "Permissions-Policy", "Cross-Origin-Embedder-Policy")


@pytest.mark.parametrize(
    ("path", "scripts"),
    [
        ("/docs", "script-src 'self'"),
        ("/dashboard/", "script-src 'self'"),
        ("/admin/login/", "script-src 'self' 'unsafe-eval'"),
    ],
)
def test_a_page_runs_only_scripts_of_this_host(client: Client, path: str, scripts: str) -> None:
    """Alpine evaluates the expressions in the admin site's templates; no other page may evaluate text."""
    answer = client.get(path)
    assert answer.status_code == 200
    assert set(answer["Content-Security-Policy"].split("; ")) == POLICY | {scripts}
    assert {name: answer[name] for name in EVERYWHERE} == EVERYWHERE
    assert answer["Cross-Origin-Embedder-Policy"] == "require-corp"
    permissions = answer["Permissions-Policy"].split(", ")
    assert {"camera=()", "geolocation=()", "publickey-credentials-get=(self)"} <= set(permissions)
    body = answer.content.decode()
    assert "<style" not in body
    assert "style=" not in body
    assert "<script>" not in body


def test_the_page_of_a_link_runs_no_script(client: Client) -> None:
    answer = client.get("/auth/magic-link/verify")
    assert answer["Content-Security-Policy"] == (
        "default-src 'none'; style-src 'self'; img-src data:; frame-ancestors 'none'; base-uri 'none'"
    )


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/", 200),
        ("GET", "/.well-known/jwks.json", 200),
        ("GET", "/config/tenants", 401),
        ("GET", "/nowhere", 404),
        ("GET", "/health", 200),
        ("GET", "/health/ready", 200),
        ("GET", "/no%00where", 404),
        ("PUT", "/", 405),
        ("POST", "/oauth/token", 413),
    ],
)
def test_every_answer_has_the_headers_that_matter(
    client: Client, method: str, path: str, status: int, settings: Any
) -> None:
    settings.MAX_BODY_BYTES = 10
    answer = client.generic(method, path, b"x" * (11 if status == 413 else 0))
    assert answer.status_code == status
    assert {name: answer[name] for name in EVERYWHERE} == EVERYWHERE
    assert [name for name in ONLY_PAGES if name in answer] == []


def test_tokens_in_the_address_of_the_docs_are_not_sent_to_other_sites(client: Client) -> None:
    answer = client.get("/docs?access_token=hush&refresh_token=hush")
    assert answer["Referrer-Policy"] == "no-referrer"
    assert "hush" not in answer.content.decode()
    script = client.get("/docs?script=")
    assert script["Content-Type"].startswith("application/javascript")


def test_hsts_is_a_year_behind_tls(client: Client, settings: Any) -> None:
    assert django_settings.SECURE_HSTS_SECONDS == 31_536_000
    assert "Strict-Transport-Security" not in client.get("/")
    settings.SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    answer = client.get("/", headers={"X-Forwarded-Proto": "https"})
    assert answer["Strict-Transport-Security"] == "max-age=31536000"
