"""Who may do what: one row per operation. Contract: Authentication; docs/permissions.md is made from it.

A view names its operation (``operationId``); the permission class finds the row here; the documentation and
the authorisation tests walk the same rows. An operation without a row is refused at start-up.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from accounts.access.scopes import Scope

if TYPE_CHECKING:
    from collections.abc import Mapping


class On(StrEnum):
    """What an operation's rights are held on."""

    NOTHING = "nothing"  # public: no credentials
    SERVICE = "service"  # any authenticated caller; the function narrows to what the caller may see
    PLATFORM = "platform"  # platform admins
    PLATFORM_PAT = "platform PAT"  # a PAT with wildcard tenants or accounts
    TENANT = "tenant"  # the scope on the tenant in the path
    ACCOUNT = "account"  # the account in the path: its owners, grants, platform admins
    USER = "user"  # the user in the path; the function decides who else may
    SELF = "self"  # the user in the path and nobody else


@dataclass(frozen=True, slots=True)
class Policy:
    """Who may call an operation.

    ``bridge`` operations are open to a token that carries ``tos_required``; ``also`` says in words what the
    function itself asks for besides.
    """

    on: On
    scope: Scope | None = None
    bridge: bool = False
    also: str = ""


PUBLIC: Final = Policy(On.NOTHING, bridge=True)

POLICIES: Final[Mapping[str, Policy]] = {
    # Discovery and sign-in
    "getContract": PUBLIC,
    "getSigningKeys": PUBLIC,
    "exchangeToken": PUBLIC,
    "logout": PUBLIC,
    "startSignIn": PUBLIC,
    "finishSignIn": PUBLIC,
    "requestMagicLink": PUBLIC,
    "showMagicLink": PUBLIC,
    "verifyMagicLink": PUBLIC,
    # Users, roles, memberships, personal access tokens
    "listUsers": Policy(
        On.SERVICE,
        Scope.USERS_READ,
        also="lists users of the tenants where the caller holds the scope, and the caller",
    ),
    "getUser": Policy(
        On.USER, Scope.USERS_READ, also="the user itself, and who holds the scope on a tenant of the user"
    ),
    "replaceUser": Policy(
        On.USER,
        Scope.USERS_WRITE,
        also="the user itself its displayName, owners the memberships of their tenants, platform admins all",
    ),
    "deleteUser": Policy(On.PLATFORM, Scope.USERS_WRITE),
    "getRoles": Policy(On.USER, Scope.USERS_READ, also="as getUser"),
    "replaceRoles": Policy(On.PLATFORM, Scope.USERS_WRITE),
    "mergeRoles": Policy(On.PLATFORM, Scope.USERS_WRITE),
    "getMemberships": Policy(
        On.USER, Scope.USERS_READ, also="as getUser; shows memberships of tenants that the caller may read"
    ),
    "replaceMemberships": Policy(
        On.USER, Scope.USERS_WRITE, also="owners of the tenants named, for users whom they may read"
    ),
    "appendMemberships": Policy(On.USER, Scope.USERS_WRITE, also="owners of the tenants named, for any user"),
    "listPersonalAccessTokens": Policy(On.USER, Scope.USERS_READ, also="the user itself and platform admins"),
    "createPersonalAccessToken": Policy(
        On.USER,
        Scope.USERS_WRITE,
        also="the user itself and platform admins; a PAT hands on no more than it has",
    ),
    "revokePersonalAccessToken": Policy(
        On.USER, Scope.USERS_WRITE, also="the user itself and platform admins"
    ),
    # Terms of service
    "getTos": PUBLIC,
    "publishTos": Policy(On.PLATFORM_PAT, Scope.TOS_PUBLISH),
    "getHistoricalTos": Policy(On.SERVICE, bridge=True),
    "listAcknowledgements": Policy(On.SELF, bridge=True),
    "acknowledgeTos": Policy(On.SELF, bridge=True, also="signed in only"),
    # Tenants and configuration
    "listTenants": Policy(On.SERVICE, Scope.CONFIG_READ),
    "createTenant": Policy(
        On.SERVICE, Scope.CONFIG_WRITE, also="owners of the account, no guests, and platform admins"
    ),
    "getTenantManifest": Policy(On.SERVICE, Scope.CONFIG_READ),
    "getTenant": Policy(On.TENANT, Scope.CONFIG_READ),
    "deleteTenant": Policy(On.TENANT, Scope.CONFIG_WRITE, also="owners of the tenant and platform admins"),
    "getTenantConfig": Policy(On.TENANT, Scope.CONFIG_READ),
    "replaceTenantConfig": Policy(On.TENANT, Scope.CONFIG_WRITE),
    "getTenantRules": Policy(On.TENANT, Scope.CONFIG_READ),
    "replaceTenantRules": Policy(On.TENANT, Scope.CONFIG_WRITE),
    "validateRules": Policy(On.SERVICE),
    # Change history
    "listChanges": Policy(On.SERVICE, Scope.CONFIG_READ),
    "listConfigHistory": Policy(On.TENANT, Scope.CONFIG_READ),
    "diffConfig": Policy(On.TENANT, Scope.CONFIG_READ),
    "getConfigRevision": Policy(On.TENANT, Scope.CONFIG_READ),
    "restoreConfig": Policy(On.TENANT, Scope.CONFIG_WRITE),
    "listRulesHistory": Policy(On.TENANT, Scope.CONFIG_READ),
    "diffRules": Policy(On.TENANT, Scope.CONFIG_READ),
    "getRulesRevision": Policy(On.TENANT, Scope.CONFIG_READ),
    "restoreRules": Policy(On.TENANT, Scope.CONFIG_WRITE),
    "listAccountHistory": Policy(On.ACCOUNT, Scope.CONFIG_READ),
    "diffAccount": Policy(On.ACCOUNT, Scope.CONFIG_READ),
    "getAccountRevision": Policy(On.ACCOUNT, Scope.CONFIG_READ),
    # Accounts, domains, FQDNs, grants
    "listAccounts": Policy(On.SERVICE, Scope.CONFIG_READ),
    "createAccount": Policy(On.PLATFORM, Scope.CONFIG_WRITE),
    "getAccount": Policy(On.ACCOUNT, Scope.CONFIG_READ),
    "replaceAccount": Policy(
        On.ACCOUNT,
        Scope.CONFIG_WRITE,
        also="other owners: owners of the account and platform admins; another plan: platform admins",
    ),
    "deleteAccount": Policy(On.PLATFORM, Scope.CONFIG_WRITE),
    "listDomains": Policy(On.ACCOUNT, Scope.CONFIG_READ),
    "registerDomain": Policy(On.ACCOUNT, Scope.CONFIG_WRITE),
    "getDomain": Policy(On.ACCOUNT, Scope.CONFIG_READ),
    "deleteDomain": Policy(On.ACCOUNT, Scope.CONFIG_WRITE),
    "verifyDomain": Policy(On.ACCOUNT, Scope.CONFIG_WRITE),
    "listFqdns": Policy(On.SERVICE, Scope.CONFIG_READ),
    "getFqdn": Policy(On.SERVICE, Scope.CONFIG_READ),
    "listGrants": Policy(On.SERVICE, Scope.USERS_READ),
    "createGrant": Policy(
        On.SERVICE,
        Scope.USERS_WRITE,
        also="owners of the tenant or account and platform admins; no more than they hold",
    ),
    "revokeGrant": Policy(On.SERVICE, Scope.USERS_WRITE, also="who may make such a grant"),
    # Cache metadata and markers
    "getCacheMetadata": Policy(On.TENANT, Scope.CACHE_ADMIN),
    "replaceCacheMetadata": Policy(On.TENANT, Scope.CACHE_ADMIN),
    "listMarkers": Policy(On.TENANT, Scope.CACHE_ADMIN),
    "createMarker": Policy(On.TENANT, Scope.CACHE_ADMIN),
    "getMarker": Policy(On.TENANT, Scope.CACHE_ADMIN),
    "replaceMarker": Policy(On.TENANT, Scope.CACHE_ADMIN),
    "deleteMarker": Policy(On.TENANT, Scope.CACHE_ADMIN),
    "invalidateRules": Policy(On.TENANT, Scope.CACHE_ADMIN),
    # Analytics
    "getYearlySummary": Policy(On.TENANT, Scope.ANALYTICS_READ),
    "getMonthlySummary": Policy(On.TENANT, Scope.ANALYTICS_READ),
    "getDailySummary": Policy(On.TENANT, Scope.ANALYTICS_READ),
    "getRuleEffectiveness": Policy(On.TENANT, Scope.ANALYTICS_READ),
    "getCacheOpportunities": Policy(On.TENANT, Scope.ANALYTICS_READ),
    "getUsersSummary": Policy(On.TENANT, Scope.ANALYTICS_USERS),
    "getUserYearlySummary": Policy(On.TENANT, Scope.ANALYTICS_USERS),
    "getUserMonthlySummary": Policy(On.TENANT, Scope.ANALYTICS_USERS),
    "getUserDailySummary": Policy(On.TENANT, Scope.ANALYTICS_USERS),
    # Raw logs and SQL
    "listLogMonths": Policy(On.TENANT, Scope.LOGS_READ),
    "listLogDays": Policy(On.TENANT, Scope.LOGS_READ),
    "listLogHours": Policy(On.TENANT, Scope.LOGS_READ),
    "listLogFiles": Policy(On.TENANT, Scope.LOGS_READ),
    "getLogObject": Policy(On.TENANT, Scope.LOGS_READ),
    "queryLogs": Policy(On.TENANT, Scope.LOGS_QUERY),
}
