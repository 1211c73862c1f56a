"""Read identity providers from the environment, in the form of django-allauth's settings. No side effects.

``SIGNIN_PROVIDERS`` names them in order, for example ``corp,google``. Each needs
``SIGNIN_<NAME>_CLIENT_ID`` and ``SIGNIN_<NAME>_CLIENT_SECRET``. ``google``, ``github`` and ``microsoft`` are
built in. Any other name is an OpenID Connect provider, which also needs ``SIGNIN_<NAME>_ISSUER``. Microsoft
also needs ``SIGNIN_MICROSOFT_TENANT``: an email address counts as verified only if this is one directory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_SHARED_DIRECTORIES: Final = frozenset({"common", "organizations", "consumers"})
#: What people call the known providers.
_NAMES: Final = {"google": "Google", "github": "GitHub", "microsoft": "Microsoft"}
_SCOPES: Final = {
    "google": ["openid", "profile", "email"],
    "github": ["read:user", "user:email"],
    "microsoft": ["User.Read"],
}


def read_providers(names: Sequence[str], environ: Mapping[str, str]) -> tuple[dict[str, Any], list[str]]:
    """Return ``SOCIALACCOUNT_PROVIDERS`` for ``names``, and a sentence about each bad variable."""
    providers: dict[str, Any] = {}
    problems: list[str] = []
    for name in names:
        kind = name if name in _SCOPES else "openid_connect"
        provider = providers.setdefault(kind, {"APPS": [], "OAUTH_PKCE_ENABLED": True})
        options = {
            option: environ.get(_variable(name, option), "").strip() for option in _required_options(kind)
        }
        problems += [
            f"{_variable(name, option)} is missing: the identity provider '{name}' needs it."
            for option, value in options.items()
            if not value
        ]
        issuer = options.get("ISSUER")
        if issuer and not (issuer.startswith(("https://", "http://")) and urlsplit(issuer).netloc):
            problems.append(
                f"{_variable(name, 'ISSUER')} is {issuer!r}: set it to the issuer's address, "
                "such as https://sso.example.com."
            )
        provider["APPS"].append(
            {
                "provider_id": name,
                "name": _NAMES.get(name, name),
                "client_id": options["CLIENT_ID"],
                "secret": options["CLIENT_SECRET"],
                "settings": _settings_of(kind, options),
            }
        )
        if kind in _SCOPES:
            provider["SCOPE"] = _SCOPES[kind]
    return providers, problems


def _required_options(kind: str) -> list[str]:
    more = {"openid_connect": ["ISSUER"], "microsoft": ["TENANT"]}
    return ["CLIENT_ID", "CLIENT_SECRET", *more.get(kind, [])]


def _settings_of(kind: str, options: Mapping[str, str]) -> dict[str, Any]:
    if kind == "openid_connect":
        return {"server_url": options["ISSUER"].rstrip("/"), "oauth_pkce_enabled": True}
    if kind == "microsoft":
        directory = options["TENANT"]
        return {"tenant": directory, "verified_email": directory not in _SHARED_DIRECTORIES}
    return {}


def _variable(name: str, option: str) -> str:
    return f"SIGNIN_{name.upper().replace('-', '_')}_{option}"
