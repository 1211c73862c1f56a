"""Identity providers from the environment."""

from __future__ import annotations

import environ
import pytest
from django.core.exceptions import ImproperlyConfigured

from tenantadmin.conf.providers import read_providers


def read(monkeypatch: pytest.MonkeyPatch, **variables: str) -> tuple[list[str], dict[str, object]]:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    return read_providers(environ.Env())


def test_none_is_configured_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    assert read(monkeypatch) == ([], {})


def test_several_at_once_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    names, providers = read(
        monkeypatch,
        SIGNIN_PROVIDERS="corp-sso, google,microsoft",
        SIGNIN_CORP_SSO_CLIENT_ID="a",
        SIGNIN_CORP_SSO_CLIENT_SECRET="b",
        SIGNIN_CORP_SSO_ISSUER="https://sso.example.org/",
        SIGNIN_GOOGLE_CLIENT_ID="c",
        SIGNIN_GOOGLE_CLIENT_SECRET="d",
        SIGNIN_MICROSOFT_CLIENT_ID="e",
        SIGNIN_MICROSOFT_CLIENT_SECRET="f",
        SIGNIN_MICROSOFT_TENANT="common",
    )
    assert names == ["corp-sso", "google", "microsoft"]
    assert providers == {
        "openid_connect": {
            "OAUTH_PKCE_ENABLED": True,
            "APPS": [
                {
                    "provider_id": "corp-sso",
                    "name": "corp-sso",
                    "client_id": "a",
                    "secret": "b",
                    "settings": {"server_url": "https://sso.example.org", "oauth_pkce_enabled": True},
                }
            ],
        },
        "google": {
            "OAUTH_PKCE_ENABLED": True,
            "SCOPE": ["openid", "profile", "email"],
            "APPS": [
                {"provider_id": "google", "name": "google", "client_id": "c", "secret": "d", "settings": {}}
            ],
        },
        "microsoft": {
            "OAUTH_PKCE_ENABLED": True,
            "SCOPE": ["User.Read"],
            "APPS": [
                {
                    "provider_id": "microsoft",
                    "name": "microsoft",
                    "client_id": "e",
                    "secret": "f",
                    # The addresses of a shared directory are verified by nobody.
                    "settings": {"tenant": "common", "verified_email": False},
                }
            ],
        },
    }


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"SIGNIN_PROVIDERS": "google"}, "needs SIGNIN_GOOGLE_CLIENT_ID"),
        (
            {"SIGNIN_PROVIDERS": "corp", "SIGNIN_CORP_CLIENT_ID": "a", "SIGNIN_CORP_CLIENT_SECRET": "b"},
            "needs SIGNIN_CORP_ISSUER",
        ),
        ({"SIGNIN_PROVIDERS": "google,google"}, "stands twice"),
        ({"SIGNIN_PROVIDERS": "a b"}, "is not a name"),
    ],
)
def test_what_is_missing_is_named(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], message: str
) -> None:
    with pytest.raises(ImproperlyConfigured, match=message):
        read(monkeypatch, **variables)
