"""Identity providers from the environment, in the form that django-allauth reads. Pure.

``SIGNIN_PROVIDERS`` names them in order, for example ``corp,google``. Each has
``SIGNIN_<NAME>_CLIENT_ID`` and ``SIGNIN_<NAME>_CLIENT_SECRET``. ``google``, ``github`` and ``microsoft`` are
known; any other name is an OpenID Connect issuer and has ``SIGNIN_<NAME>_ISSUER``. Microsoft needs
``SIGNIN_MICROSOFT_TENANT``: only the addresses of one named directory are verified by it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_SHARED_DIRECTORIES: Final = frozenset({"common", "organizations", "consumers"})
_SCOPES: Final = {
    "google": ["openid", "profile", "email"],
    "github": ["read:user", "user:email"],
    "microsoft": ["User.Read"],
}


def read_providers(names: Sequence[str], environ: Mapping[str, str]) -> tuple[dict[str, Any], list[str]]:
    """Return the setting ``SOCIALACCOUNT_PROVIDERS`` of ``names``, and a sentence for each bad variable."""
    providers: dict[str, Any] = {}
    problems: list[str] = []
    for name in names:
        kind = name if name in _SCOPES else "openid_connect"
        provider = providers.setdefault(kind, {"APPS": [], "OAUTH_PKCE_ENABLED": True})
        given = {what: environ.get(_variable(name, what), "").strip() for what in _wanted_of(kind)}
        problems += [
            f"{_variable(name, what)} is missing: the identity provider '{name}' needs it."
            for what, value in given.items()
            if not value
        ]
        issuer = given.get("ISSUER")
        if issuer and not (issuer.startswith(("https://", "http://")) and urlsplit(issuer).netloc):
            problems.append(
                f"{_variable(name, 'ISSUER')} is {issuer!r}: set it to the issuer's address, "
                "such as https://sso.example.com."
            )
        provider["APPS"].append(
            {
                "provider_id": name,
                "name": name,
                "client_id": given["CLIENT_ID"],
                "secret": given["CLIENT_SECRET"],
                "settings": _settings_of(kind, given),
            }
        )
        if kind in _SCOPES:
            provider["SCOPE"] = _SCOPES[kind]
    return providers, problems


def _wanted_of(kind: str) -> list[str]:
    more = {"openid_connect": ["ISSUER"], "microsoft": ["TENANT"]}
    return ["CLIENT_ID", "CLIENT_SECRET", *more.get(kind, [])]


def _settings_of(kind: str, given: Mapping[str, str]) -> dict[str, Any]:
    if kind == "openid_connect":
        return {"server_url": given["ISSUER"].rstrip("/"), "oauth_pkce_enabled": True}
    if kind == "microsoft":
        directory = given["TENANT"]
        return {"tenant": directory, "verified_email": directory not in _SHARED_DIRECTORIES}
    return {}


def _variable(name: str, what: str) -> str:
    return f"SIGNIN_{name.upper().replace('-', '_')}_{what}"
