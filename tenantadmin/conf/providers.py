"""Read identity providers from the environment, in the form of django-allauth's settings. No side effects.

``SIGNIN_PROVIDERS`` names them in order, for example ``corp,google``. Each needs
``SIGNIN_<NAME>_CLIENT_ID`` and ``SIGNIN_<NAME>_CLIENT_SECRET``. ``google``, ``github`` and ``microsoft`` are
built in. Any other name is an OpenID Connect provider, which also needs ``SIGNIN_<NAME>_ISSUER``. Microsoft
also needs ``SIGNIN_MICROSOFT_TENANT``: an email address counts as verified only if this is one directory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenantadmin.conf.environment import Environment

_SHARED_DIRECTORIES: Final = frozenset({"common", "organizations", "consumers"})
#: What people call the known providers.
_NAMES: Final = {"google": "Google", "github": "GitHub", "microsoft": "Microsoft"}
_SCOPES: Final = {
    "google": ["openid", "profile", "email"],
    "github": ["read:user", "user:email"],
    "microsoft": ["User.Read"],
}


def read_providers(names: Sequence[str], env: Environment) -> dict[str, Any]:
    """Return ``SOCIALACCOUNT_PROVIDERS`` for ``names``. A missing variable is an error of ``env``."""
    providers: dict[str, Any] = {}
    for name in names:
        kind = name if name in _SCOPES else "openid_connect"
        prefix = f"SIGNIN_{name.upper().replace('-', '_')}_"
        app = {
            "provider_id": name,
            "name": _NAMES.get(name, name),
            "client_id": env.provider_option(f"{prefix}CLIENT_ID", "", required=True),
            "secret": env.provider_option(f"{prefix}CLIENT_SECRET", "", required=True),
            "settings": {},
        }
        if kind == "openid_connect":
            issuer = env.web_address(f"{prefix}ISSUER", "", required=True)
            app["settings"] = {"server_url": issuer, "oauth_pkce_enabled": True}
            if env.bool(f"{prefix}TRUST_EMAIL", False):
                app["settings"]["verified_email"] = True
        if kind == "microsoft":
            directory = env.provider_option(f"{prefix}TENANT", "", required=True)
            app["settings"] = {"tenant": directory, "verified_email": directory not in _SHARED_DIRECTORIES}
        provider = providers.setdefault(kind, {"APPS": [], "OAUTH_PKCE_ENABLED": True})
        provider["APPS"].append(app)
        if kind in _SCOPES:
            provider["SCOPE"] = _SCOPES[kind]
    return providers
