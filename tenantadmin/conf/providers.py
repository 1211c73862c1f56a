"""Identity providers from the environment, in the form that django-allauth reads. Pure.

``SIGNIN_PROVIDERS`` names them in order, for example ``corp,google``. Each has
``SIGNIN_<NAME>_CLIENT_ID`` and ``SIGNIN_<NAME>_CLIENT_SECRET``. ``google``, ``github`` and ``microsoft`` are
known; any other name is an OpenID Connect issuer and has ``SIGNIN_<NAME>_ISSUER``. Microsoft needs
``SIGNIN_MICROSOFT_TENANT``: only the addresses of one named directory are verified by it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from django.core.exceptions import ImproperlyConfigured

if TYPE_CHECKING:
    from environ import Env

_NAME: Final = re.compile(r"[a-z][a-z0-9-]{0,30}")
_SHARED_DIRECTORIES: Final = frozenset({"common", "organizations", "consumers"})
_SCOPES: Final = {
    "google": ["openid", "profile", "email"],
    "github": ["read:user", "user:email"],
    "microsoft": ["User.Read"],
}


def read_providers(env: Env) -> tuple[list[str], dict[str, Any]]:
    """Return the names in order, and the setting ``SOCIALACCOUNT_PROVIDERS``.

    Raises:
        ImproperlyConfigured: a name is not one, stands twice, or lacks one of its variables.
    """
    names = [name.strip().lower() for name in env.list("SIGNIN_PROVIDERS", default=[]) if name.strip()]
    providers: dict[str, Any] = {}
    for name in names:
        if not _NAME.fullmatch(name) or names.count(name) > 1:
            raise ImproperlyConfigured(f"SIGNIN_PROVIDERS: '{name}' stands twice or is not a name.")
        kind = name if name in _SCOPES else "openid_connect"
        provider = providers.setdefault(kind, {"APPS": [], "OAUTH_PKCE_ENABLED": True})
        provider["APPS"].append(
            {
                "provider_id": name,
                "name": name,
                "client_id": _required(env, name, "CLIENT_ID"),
                "secret": _required(env, name, "CLIENT_SECRET"),
                "settings": _settings_of(env, kind, name),
            }
        )
        if kind in _SCOPES:
            provider["SCOPE"] = _SCOPES[kind]
    return names, providers


def _settings_of(env: Env, kind: str, name: str) -> dict[str, Any]:
    if kind == "openid_connect":
        return {"server_url": _required(env, name, "ISSUER").rstrip("/"), "oauth_pkce_enabled": True}
    if kind == "microsoft":
        directory = _required(env, name, "TENANT")
        return {"tenant": directory, "verified_email": directory not in _SHARED_DIRECTORIES}
    return {}


def _required(env: Env, name: str, what: str) -> str:
    variable = f"SIGNIN_{name.upper().replace('-', '_')}_{what}"
    value = str(env.str(variable, default=""))
    if not value:
        raise ImproperlyConfigured(f"The identity provider '{name}' needs {variable}.")
    return value
