"""Scopes, the scopes of each role, and on what they are checked. Constants only; no database access."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Final


class Scope(StrEnum):
    """The values of a token's ``scope`` claim."""

    CONFIG_READ = "config:read"
    CONFIG_WRITE = "config:write"
    LOGS_READ = "logs:read"
    LOGS_QUERY = "logs:query"
    LOGS_NOTIFY = "logs:notify"
    ANALYTICS_NUMBERS = "analytics:numbers"
    ANALYTICS_READ = "analytics:read"
    ANALYTICS_USERS = "analytics:users"
    CACHE_ADMIN = "cache-admin"
    USERS_READ = "users:read"
    USERS_WRITE = "users:write"
    TOS_PUBLISH = "tos:publish"


ALL_SCOPES: Final = frozenset(Scope)

#: What each scope allows, in the words of pages. The dashboard's page of tokens says the same.
ABILITIES: Final[dict[Scope, str]] = {
    Scope.CONFIG_READ: "read rules and configuration",
    Scope.CONFIG_WRITE: "change rules and configuration",
    Scope.CACHE_ADMIN: "invalidate results",
    Scope.LOGS_READ: "read requests",
    Scope.LOGS_QUERY: "run SQL",
    Scope.ANALYTICS_NUMBERS: "read totals, savings, recommendations and digests",
    Scope.ANALYTICS_READ: "read summaries, savings and digests",
    Scope.ANALYTICS_USERS: "see names of users in them",
    Scope.LOGS_NOTIFY: "report new log files",
    Scope.USERS_READ: "see members",
    Scope.USERS_WRITE: "invite and remove members",
    Scope.TOS_PUBLISH: "publish terms of service",
}

#: Only personal access tokens have these scopes; sign-in tokens never do.
PAT_ONLY: Final = frozenset(
    {
        Scope.CACHE_ADMIN,
        Scope.ANALYTICS_NUMBERS,
        Scope.ANALYTICS_READ,
        Scope.ANALYTICS_USERS,
        Scope.TOS_PUBLISH,
    }
)

#: A scope that gives others too.
_INCLUDED: Final[dict[Scope, frozenset[Scope]]] = {Scope.ANALYTICS_READ: frozenset({Scope.ANALYTICS_NUMBERS})}


def with_included(scopes: Iterable[Scope]) -> frozenset[Scope]:
    """Return scopes with those that they give too."""
    given = frozenset(scopes)
    return given.union(*(_INCLUDED[scope] for scope in given & _INCLUDED.keys()))


def without_included(scopes: Iterable[Scope]) -> frozenset[Scope]:
    """Return scopes without those that others of them give."""
    given = frozenset(scopes)
    return given.difference(*(_INCLUDED[scope] for scope in given & _INCLUDED.keys()))


#: A PAT has these scopes only if its owner is a platform admin. Others use them signed in.
NOT_IN_MEMBERS_PATS: Final = frozenset({Scope.USERS_READ, Scope.USERS_WRITE})

#: Only members of a tenant have these scopes on it. The role of platform admin does not give them.
MEMBERS_ONLY: Final = frozenset({Scope.LOGS_READ, Scope.LOGS_QUERY})

_MEMBER: Final = with_included({Scope.CONFIG_READ, Scope.LOGS_READ, Scope.LOGS_QUERY, Scope.ANALYTICS_READ})
_TENANT_ADMIN: Final = _MEMBER | {
    Scope.CONFIG_WRITE,
    Scope.CACHE_ADMIN,
    Scope.LOGS_NOTIFY,
    Scope.ANALYTICS_USERS,
    Scope.USERS_READ,
}

#: What names users, or tells of their requests. Staff who look at a customer's tenant have it as members.
ABOUT_USERS: Final = MEMBERS_ONLY | {Scope.ANALYTICS_USERS, Scope.LOGS_NOTIFY}

#: The scopes that each membership role gives on its tenant.
MEMBERSHIP_SCOPES: Final[dict[str, frozenset[Scope]]] = {
    "member": _MEMBER,
    "admin": _TENANT_ADMIN,
    "owner": _TENANT_ADMIN | {Scope.USERS_WRITE},
}

#: The scopes that an owner has on the account itself.
ACCOUNT_OWNER_SCOPES: Final = frozenset({Scope.CONFIG_READ, Scope.CONFIG_WRITE})

#: The scopes of a platform admin on every account, and on every tenant without being a member.
PLATFORM_ADMIN_SCOPES: Final = ALL_SCOPES - MEMBERS_ONLY

#: What support may do on every tenant while it looks at one in the dashboard.
SUPPORT_SCOPES: Final = with_included({Scope.CONFIG_READ, Scope.ANALYTICS_READ, Scope.CACHE_ADMIN})

#: A guest's memberships and accounts give only these scopes.
READ_SCOPES: Final = with_included(
    {Scope.CONFIG_READ, Scope.LOGS_READ, Scope.LOGS_QUERY, Scope.ANALYTICS_READ, Scope.USERS_READ}
)

#: The scopes that a delegated grant may contain. Raw logs and SQL are for members.
GRANTABLE: Final = ALL_SCOPES - MEMBERS_ONLY


class Level(StrEnum):
    """What an operation checks the caller's rights on."""

    PUBLIC = "public"  # no credentials
    SERVICE = "service"  # any authenticated caller; the service function shows only what the caller may see
    PLATFORM = "platform"  # platform admins
    PLATFORM_PAT = "platform PAT"  # a PAT with wildcard tenants or accounts
    TENANT = "tenant"  # the scope on the tenant in the path
    ACCOUNT = "account"  # the account in the path: its owners, grants, platform admins
    USER = "user"  # the user in the path; the service function decides who else may
    SELF = "self"  # only the user in the path
