"""Tests of the identity providers in the environment."""

from __future__ import annotations

import pytest

from tenantadmin.conf.reading import ConfigurationError, read_configuration


def read(**variables: str) -> tuple[list[str], dict[str, object]]:
    values = read_configuration({"DJANGO_DEBUG": "true", **variables})
    return values["SIGNIN_PROVIDERS"], values["SOCIALACCOUNT_PROVIDERS"]


def test_none_is_configured_by_default() -> None:
    assert read() == ([], {})


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
                    # Nobody verifies the addresses of a shared directory.
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
                "SIGNIN_GOOGLE_CLIENT_ID is missing: the identity provider 'google' needs it.",
                "SIGNIN_GOOGLE_CLIENT_SECRET is missing: the identity provider 'google' needs it.",
            ],
        ),
        (
            {"SIGNIN_PROVIDERS": "corp", "SIGNIN_CORP_CLIENT_ID": "a", "SIGNIN_CORP_CLIENT_SECRET": "b"},
            ["SIGNIN_CORP_ISSUER is missing: the identity provider 'corp' needs it."],
        ),
        (
            {
                "SIGNIN_PROVIDERS": "corp",
                "SIGNIN_CORP_CLIENT_ID": "a",
                "SIGNIN_CORP_CLIENT_SECRET": "b",
                "SIGNIN_CORP_ISSUER": "sso.example.org",
            },
            [
                (
                    "SIGNIN_CORP_ISSUER is 'sso.example.org': set it to the issuer's address, "
                    "such as https://sso.example.com."
                )
            ],
        ),
        (
            {"SIGNIN_PROVIDERS": "google,google"},
            [
                (
                    "SIGNIN_PROVIDERS is 'google': set it to google, github, microsoft, or a name of "
                    "letters, digits and hyphens; several, each once, with commas in between."
                )
            ],
        ),
        (
            {"SIGNIN_PROVIDERS": "a b"},
            [
                (
                    "SIGNIN_PROVIDERS is 'a b': set it to google, github, microsoft, or a name of "
                    "letters, digits and hyphens; several, each once, with commas in between."
                )
            ],
        ),
    ],
)
def test_a_missing_or_bad_variable_is_named(variables: dict[str, str], problems: list[str]) -> None:
    with pytest.raises(ConfigurationError) as caught:
        read(**variables)
    assert caught.value.problems == problems
