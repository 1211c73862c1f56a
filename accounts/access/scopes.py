"""Scopes, and what each role brings. Frozen data: nothing here asks the database."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class Scope(StrEnum):
    """The names that stand in a token's ``scope`` claim."""

    CONFIG_READ = "config:read"
    CONFIG_WRITE = "config:write"
    LOGS_READ = "logs:read"
    LOGS_QUERY = "logs:query"
    ANALYTICS_READ = "analytics:read"
    ANALYTICS_USERS = "analytics:users"
    CACHE_ADMIN = "cache-admin"
    USERS_READ = "users:read"
    USERS_WRITE = "users:write"
    TOS_PUBLISH = "tos:publish"


#: Everything, in the order of the documentation.
ALL_SCOPES: Final = frozenset(Scope)

#: These come from personal access tokens alone, never from signing in.
PAT_ONLY: Final = frozenset(
    {Scope.CACHE_ADMIN, Scope.ANALYTICS_READ, Scope.ANALYTICS_USERS, Scope.TOS_PUBLISH}
)

#: A member's PAT never holds these: they are used signed in, or by a platform admin's PAT.
NOT_IN_MEMBERS_PATS: Final = frozenset({Scope.USERS_READ, Scope.USERS_WRITE})

#: These need membership, whoever asks: a platform admin's role does not bring them.
MEMBERS_ONLY: Final = frozenset({Scope.LOGS_READ, Scope.LOGS_QUERY})

_MEMBER: Final = frozenset({Scope.CONFIG_READ, Scope.LOGS_READ, Scope.LOGS_QUERY, Scope.ANALYTICS_READ})
_TENANT_ADMIN: Final = _MEMBER | {
    Scope.CONFIG_WRITE,
    Scope.CACHE_ADMIN,
    Scope.ANALYTICS_USERS,
    Scope.USERS_READ,
}

#: What a membership brings on its tenant.
MEMBERSHIP_SCOPES: Final[dict[str, frozenset[Scope]]] = {
    "member": _MEMBER,
    "admin": _TENANT_ADMIN,
    "owner": _TENANT_ADMIN | {Scope.USERS_WRITE},
}

#: What owning an account brings on the account itself.
ACCOUNT_OWNER_SCOPES: Final = frozenset({Scope.CONFIG_READ, Scope.CONFIG_WRITE})

#: What a platform admin may do on every tenant without being a member, and on every account.
PLATFORM_ADMIN_SCOPES: Final = ALL_SCOPES - MEMBERS_ONLY

#: A guest's memberships and accounts bring no more than this.
READ_SCOPES: Final = frozenset(
    {Scope.CONFIG_READ, Scope.LOGS_READ, Scope.LOGS_QUERY, Scope.ANALYTICS_READ, Scope.USERS_READ}
)

#: What a delegated grant may hold.
GRANTABLE: Final = ALL_SCOPES - {Scope.CACHE_ADMIN}
