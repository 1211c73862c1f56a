"""Tests of the identity providers in the environment."""

from __future__ import annotations

import pytest

from tenantadmin.conf.environment import ConfigurationError
from tests.environment import read_settings

MISSING = "Set it to what the identity provider gave you, or remove the provider from SIGNIN_PROVIDERS."
BAD_NAME = (
    "is not google, github, microsoft, or a name of letters, digits and hyphens. Separate several by commas."
)


def read(**variables: str) -> tuple[list[str], dict[str, object]]:
    values = read_settings({"DJANGO_DEBUG": "true", **variables})
    return values["SIGNIN_PROVIDERS"], values["SOCIALACCOUNT_PROVIDERS"]


def test_none_is_configured_by_default() -> None:
    assert read() == ([], {})


@pytest.mark.parametrize(("value", "trusted"), [("true", True), ("false", None)])
def test_addresses_of_an_issuer_are_trusted_only_if_it_is_said(value: str, trusted: bool | None) -> None:
    corp = {f"SIGNIN_CORP_{name}": "a" for name in ("CLIENT_ID", "CLIENT_SECRET")}
    _, providers = read(
        SIGNIN_PROVIDERS="corp",
        SIGNIN_CORP_ISSUER="https://sso.example.org",
        SIGNIN_CORP_TRUST_EMAIL=value,
        **corp,
    )
    (app,) = providers["openid_connect"]["APPS"]  # type: ignore[index]
    assert app["settings"].get("verified_email") is trusted


def test_several_providers_are_read_in_order() -> None:
    names, providers = read(
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
                {"provider_id": "google", "name": "Google", "client_id": "c", "secret": "d", "settings": {}}
            ],
        },
        "microsoft": {
            "OAUTH_PKCE_ENABLED": True,
            "SCOPE": ["User.Read"],
            "APPS": [
                {
                    "provider_id": "microsoft",
                    "name": "Microsoft",
                    "client_id": "e",
                    "secret": "f",
                    # The addresses of a shared directory are not verified.
                    "settings": {"tenant": "common", "verified_email": False},
                }
            ],
        },
    }


@pytest.mark.parametrize(
    ("variables", "problems"),
    [
        (
            {"SIGNIN_PROVIDERS": "google"},
            [
                f"SIGNIN_GOOGLE_CLIENT_ID: {MISSING}",
                f"SIGNIN_GOOGLE_CLIENT_SECRET: {MISSING}",
            ],
        ),
        (
            {"SIGNIN_PROVIDERS": "corp", "SIGNIN_CORP_CLIENT_ID": "a", "SIGNIN_CORP_CLIENT_SECRET": "b"},
            ["SIGNIN_CORP_ISSUER: Set it to an address such as https://tenants.example.com."],
        ),
        (
            {
                "SIGNIN_PROVIDERS": "corp",
                "SIGNIN_CORP_CLIENT_ID": "a",
                "SIGNIN_CORP_CLIENT_SECRET": "b",
                "SIGNIN_CORP_ISSUER": "sso.example.org",
            },
            ["SIGNIN_CORP_ISSUER: Set it to an address such as https://tenants.example.com."],
        ),
        (
            {"SIGNIN_PROVIDERS": "google,google"},
            ["SIGNIN_PROVIDERS: Name each once."],
        ),
        (
            {"SIGNIN_PROVIDERS": "a b"},
            [f"SIGNIN_PROVIDERS: 'a b' {BAD_NAME}"],
        ),
    ],
)
def test_a_missing_or_bad_variable_is_named(variables: dict[str, str], problems: list[str]) -> None:
    with pytest.raises(ConfigurationError) as caught:
        read(**variables)
    assert caught.value.problems == problems
