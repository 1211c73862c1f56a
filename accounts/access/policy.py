"""Who may call which operation: one row per operation. Contract: Authentication.

A view names its operation (``operationId``), and the permission class looks up the row here.
docs/permissions.md and the authorisation tests are made from the same rows. A start-up check fails if an
operation has no row.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from accounts.access.scopes import Scope

if TYPE_CHECKING:
    from collections.abc import Mapping


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


@dataclass(frozen=True, slots=True)
class Policy:
    """Who may call an operation.

    A token with ``tos_required`` may call only operations with ``before_terms``. ``notes`` describes the
    checks of the service function itself, for the documentation. ``also`` is a second scope that a caller
    must have. ``needs_fresh_proof`` asks a caller with the right for its second factor and a reason
    (`accounts.access.assurance`).
    """

    level: Level
    scope: Scope | None = None
    before_terms: bool = False
    notes: str = ""
    also: Scope | None = None
    needs_fresh_proof: bool = False

    @property
    def scopes(self) -> tuple[Scope, ...]:
        """The scopes that a caller must have. It needs all."""
        return tuple(scope for scope in (self.scope, self.also) if scope is not None)


PUBLIC: Final = Policy(Level.PUBLIC, before_terms=True)

POLICIES: Final[Mapping[str, Policy]] = {
    # Discovery and sign-in
    "getContract": PUBLIC,
    "getSigningKeys": PUBLIC,
    "exchangeToken": PUBLIC,
    "logout": PUBLIC,
    "introspectToken": Policy(
        Level.SERVICE,
        Scope.CONFIG_READ,
        notes="`{active: false}` unless the caller has the scope on all tenants and accounts of the token",
    ),
    "listSignInProviders": PUBLIC,
    "startSignIn": PUBLIC,
    "stepUp": PUBLIC,
    "finishSignIn": PUBLIC,
    "finishSignInAt": PUBLIC,
    "requestMagicLink": PUBLIC,
    "showMagicLink": PUBLIC,
    "verifyMagicLink": PUBLIC,
    # Users, roles, memberships, personal access tokens
    "listUsers": Policy(
        Level.SERVICE,
        Scope.USERS_READ,
        notes="lists the caller, and the users of tenants on which the caller has the scope",
    ),
    "getUser": Policy(
        Level.USER,
        Scope.USERS_READ,
        notes="the user itself, and callers with the scope on a tenant of the user",
    ),
    "replaceUser": Policy(
        Level.USER,
        Scope.USERS_WRITE,
        notes="the user itself: displayName; owners: memberships of their tenants; platform admins: all; a "
        "proof, if roles or activity change, or memberships by the role of a platform admin",
    ),
    "deleteUser": Policy(Level.PLATFORM, Scope.USERS_WRITE, needs_fresh_proof=True),
    "getRoles": Policy(Level.USER, Scope.USERS_READ, notes="as getUser"),
    "replaceRoles": Policy(Level.PLATFORM, Scope.USERS_WRITE, needs_fresh_proof=True),
    "mergeRoles": Policy(Level.PLATFORM, Scope.USERS_WRITE, needs_fresh_proof=True),
    "getMemberships": Policy(
        Level.USER, Scope.USERS_READ, notes="as getUser; shows only memberships that the caller may see"
    ),
    "replaceMemberships": Policy(
        Level.USER,
        Scope.USERS_WRITE,
        notes="owners of the tenants named, for members of these; platform admins with a proof, who alone "
        "add members, but not themselves",
    ),
    "appendMemberships": Policy(Level.USER, Scope.USERS_WRITE, notes="as replaceMemberships"),
    # Invitations
    "listInvitations": Policy(
        Level.TENANT, Scope.USERS_READ, notes="owners of the tenant and platform admins"
    ),
    "createInvitation": Policy(
        Level.TENANT,
        Scope.USERS_WRITE,
        notes="owners of the tenant; platform admins with a proof, but not themselves",
    ),
    "withdrawInvitation": Policy(
        Level.TENANT, Scope.USERS_WRITE, notes="owners of the tenant and platform admins"
    ),
    "listOwnInvitations": Policy(Level.SELF, Scope.USERS_READ),
    "acceptInvitation": Policy(Level.SELF, notes="signed in only"),
    "declineInvitation": Policy(Level.SELF, notes="signed in only"),
    # Access of staff
    "listAccessRequests": Policy(
        Level.TENANT, Scope.USERS_READ, notes="owners of the tenant and platform admins"
    ),
    "approveAccess": Policy(Level.TENANT, Scope.USERS_WRITE, notes="owners of the tenant, signed in only"),
    "declineAccess": Policy(Level.TENANT, Scope.USERS_WRITE, notes="owners of the tenant, signed in only"),
    "listPersonalAccessTokens": Policy(
        Level.USER, Scope.USERS_READ, notes="the user itself and platform admins"
    ),
    "getPersonalAccessToken": Policy(
        Level.USER, Scope.USERS_READ, notes="the user itself and platform admins"
    ),
    "createPersonalAccessToken": Policy(
        Level.USER,
        Scope.USERS_WRITE,
        notes="the user itself and platform admins, with a proof for another user or a wildcard, and without "
        "`logs:read` and `logs:query` for another user; a PAT creates only PATs with no more rights than its "
        "own",
    ),
    "rotatePersonalAccessToken": Policy(
        Level.USER,
        Scope.USERS_WRITE,
        notes="as createPersonalAccessToken",
    ),
    "revokePersonalAccessToken": Policy(
        Level.USER, Scope.USERS_WRITE, notes="the user itself, and platform admins with a proof"
    ),
    # Sessions
    "listSessions": Policy(Level.USER, Scope.USERS_READ, notes="the user itself and platform admins"),
    "getSession": Policy(Level.USER, Scope.USERS_READ, notes="the user itself and platform admins"),
    "endSession": Policy(
        Level.USER, Scope.USERS_WRITE, notes="the user itself, and platform admins with a proof"
    ),
    "endSessions": Policy(
        Level.USER, Scope.USERS_WRITE, notes="the user itself, and platform admins with a proof"
    ),
    # Terms of service
    "getTos": PUBLIC,
    "publishTos": Policy(Level.PLATFORM_PAT, Scope.TOS_PUBLISH),
    "getHistoricalTos": Policy(Level.SERVICE, before_terms=True),
    "listAcknowledgements": Policy(Level.SELF, before_terms=True),
    "acknowledgeTos": Policy(Level.SELF, before_terms=True, notes="signed in only"),
    # Tenants and configuration
    "listTenants": Policy(Level.SERVICE, Scope.CONFIG_READ),
    "createTenant": Policy(
        Level.SERVICE,
        Scope.CONFIG_WRITE,
        notes="owners of the account who are not guests, and platform admins",
    ),
    "getTenantManifest": Policy(Level.SERVICE, Scope.CONFIG_READ),
    "getTenant": Policy(Level.TENANT, Scope.CONFIG_READ),
    "deleteTenant": Policy(
        Level.TENANT, Scope.CONFIG_WRITE, notes="owners of the tenant and platform admins"
    ),
    "restoreTenant": Policy(
        Level.TENANT, Scope.CONFIG_WRITE, notes="owners of the deleted tenant and platform admins"
    ),
    "getTenantConfig": Policy(Level.TENANT, Scope.CONFIG_READ),
    "replaceTenantConfig": Policy(
        Level.TENANT, Scope.CONFIG_WRITE, notes="`access`: owners of the tenant, signed in only"
    ),
    "getTenantRules": Policy(Level.TENANT, Scope.CONFIG_READ),
    "replaceTenantRules": Policy(Level.TENANT, Scope.CONFIG_WRITE),
    "validateRules": Policy(Level.SERVICE),
    "parseWarehouse": Policy(Level.SERVICE),
    "explainRequest": Policy(Level.TENANT, Scope.CONFIG_READ),
    "listDrafts": Policy(Level.TENANT, Scope.CONFIG_READ),
    "createDraft": Policy(Level.TENANT, Scope.CONFIG_WRITE),
    "getDraft": Policy(Level.TENANT, Scope.CONFIG_READ),
    "replaceDraft": Policy(Level.TENANT, Scope.CONFIG_WRITE),
    "deleteDraft": Policy(Level.TENANT, Scope.CONFIG_WRITE),
    "diffDraft": Policy(Level.TENANT, Scope.CONFIG_READ),
    "publishDraft": Policy(Level.TENANT, Scope.CONFIG_WRITE),
    # Change history
    "listChanges": Policy(Level.SERVICE, Scope.CONFIG_READ),
    "listEvents": Policy(
        Level.SERVICE,
        Scope.USERS_READ,
        notes="platform admins: all; owners: their tenants and accounts; everyone: their own",
    ),
    "listConfigHistory": Policy(Level.TENANT, Scope.CONFIG_READ),
    "diffConfig": Policy(Level.TENANT, Scope.CONFIG_READ),
    "getConfigRevision": Policy(Level.TENANT, Scope.CONFIG_READ),
    "restoreConfig": Policy(Level.TENANT, Scope.CONFIG_WRITE, notes="`access`: as replaceTenantConfig"),
    "listRulesHistory": Policy(Level.TENANT, Scope.CONFIG_READ),
    "diffRules": Policy(Level.TENANT, Scope.CONFIG_READ),
    "getRulesRevision": Policy(Level.TENANT, Scope.CONFIG_READ),
    "blameRules": Policy(Level.TENANT, Scope.CONFIG_READ),
    "restoreRules": Policy(Level.TENANT, Scope.CONFIG_WRITE),
    "listAccountHistory": Policy(Level.ACCOUNT, Scope.CONFIG_READ),
    "diffAccount": Policy(Level.ACCOUNT, Scope.CONFIG_READ),
    "getAccountRevision": Policy(Level.ACCOUNT, Scope.CONFIG_READ),
    # Accounts, domains, FQDNs, grants
    "listAccounts": Policy(Level.SERVICE, Scope.CONFIG_READ),
    "createAccount": Policy(Level.PLATFORM, Scope.CONFIG_WRITE),
    "getAccount": Policy(Level.ACCOUNT, Scope.CONFIG_READ),
    "replaceAccount": Policy(
        Level.ACCOUNT,
        Scope.CONFIG_WRITE,
        notes="owners of the account, who add only members of their tenants, and platform admins change "
        "owners; platform admins change the plan",
    ),
    "deleteAccount": Policy(Level.PLATFORM, Scope.CONFIG_WRITE),
    "listDomains": Policy(Level.ACCOUNT, Scope.CONFIG_READ),
    "registerDomain": Policy(Level.ACCOUNT, Scope.CONFIG_WRITE),
    "getDomain": Policy(Level.ACCOUNT, Scope.CONFIG_READ),
    "deleteDomain": Policy(Level.ACCOUNT, Scope.CONFIG_WRITE),
    "verifyDomain": Policy(Level.ACCOUNT, Scope.CONFIG_WRITE),
    "listFqdns": Policy(Level.SERVICE, Scope.CONFIG_READ),
    "getFqdn": Policy(Level.SERVICE, Scope.CONFIG_READ),
    "listGrants": Policy(Level.SERVICE, Scope.USERS_READ),
    "getGrant": Policy(Level.SERVICE, Scope.USERS_READ, notes="what listGrants lists"),
    "createGrant": Policy(
        Level.SERVICE,
        Scope.USERS_WRITE,
        notes="owners of the tenant or account, for any address, and platform admins, for users; only scopes "
        "that they have themselves",
    ),
    "revokeGrant": Policy(
        Level.SERVICE,
        Scope.USERS_WRITE,
        notes="the user who gave the grant, owners of the tenant or account, and platform admins",
    ),
    # Cache metadata and markers
    "getCacheMetadata": Policy(Level.TENANT, Scope.CACHE_ADMIN),
    "replaceCacheMetadata": Policy(Level.TENANT, Scope.CACHE_ADMIN),
    "deleteCacheMetadata": Policy(Level.TENANT, Scope.CACHE_ADMIN),
    "listCacheMetadata": Policy(Level.TENANT, Scope.CACHE_ADMIN),
    "replaceManyCacheMetadata": Policy(Level.TENANT, Scope.CACHE_ADMIN),
    "pollMarkers": Policy(
        Level.SERVICE, Scope.CACHE_ADMIN, notes="lists the markers of tenants on which the PAT has the scope"
    ),
    "listMarkers": Policy(Level.TENANT, Scope.CACHE_ADMIN),
    "createMarker": Policy(Level.TENANT, Scope.CACHE_ADMIN),
    "getMarker": Policy(Level.TENANT, Scope.CACHE_ADMIN),
    "replaceMarker": Policy(Level.TENANT, Scope.CACHE_ADMIN),
    "deleteMarker": Policy(Level.TENANT, Scope.CACHE_ADMIN),
    "invalidateRules": Policy(Level.TENANT, Scope.CACHE_ADMIN),
    "invalidateTables": Policy(Level.TENANT, Scope.CACHE_ADMIN),
    # Analytics
    "getYearlySummary": Policy(Level.TENANT, Scope.ANALYTICS_READ),
    "getMonthlySummary": Policy(Level.TENANT, Scope.ANALYTICS_READ),
    "getDailySummary": Policy(Level.TENANT, Scope.ANALYTICS_READ),
    "getRuleEffectiveness": Policy(Level.TENANT, Scope.ANALYTICS_READ),
    "getCacheOpportunities": Policy(Level.TENANT, Scope.ANALYTICS_READ),
    "getUsersSummary": Policy(Level.TENANT, Scope.ANALYTICS_USERS),
    "getUserYearlySummary": Policy(Level.TENANT, Scope.ANALYTICS_USERS),
    "getUserMonthlySummary": Policy(Level.TENANT, Scope.ANALYTICS_USERS),
    "getUserDailySummary": Policy(Level.TENANT, Scope.ANALYTICS_USERS),
    "listPublishedQueries": Policy(Level.SERVICE),
    "verifyDocument": Policy(
        Level.TENANT,
        Scope.ANALYTICS_READ,
        also=Scope.LOGS_QUERY,
        notes="documents about users need `analytics:users` too",
    ),
    # Replays
    "listReplays": Policy(Level.TENANT, Scope.CONFIG_READ),
    "requestReplay": Policy(Level.TENANT, Scope.CONFIG_WRITE),
    "getReplay": Policy(Level.TENANT, Scope.CONFIG_READ),
    "cancelReplay": Policy(Level.TENANT, Scope.CONFIG_WRITE),
    # Recommendations
    "listRecommendations": Policy(Level.TENANT, Scope.ANALYTICS_READ),
    "requestRecommendations": Policy(Level.TENANT, Scope.ANALYTICS_READ),
    "getRecommendation": Policy(Level.TENANT, Scope.ANALYTICS_READ),
    "draftRecommendation": Policy(Level.TENANT, Scope.ANALYTICS_READ, also=Scope.CONFIG_WRITE),
    "acceptRecommendation": Policy(Level.TENANT, Scope.ANALYTICS_READ, also=Scope.CONFIG_WRITE),
    "dismissRecommendation": Policy(Level.TENANT, Scope.ANALYTICS_READ, also=Scope.CONFIG_WRITE),
    "reopenRecommendation": Policy(Level.TENANT, Scope.ANALYTICS_READ, also=Scope.CONFIG_WRITE),
    "getRecommendationEffect": Policy(Level.TENANT, Scope.ANALYTICS_READ),
    "getStaleReport": Policy(Level.TENANT, Scope.ANALYTICS_READ),
    "getLeaksReport": Policy(Level.TENANT, Scope.ANALYTICS_USERS),
    "getSavings": Policy(Level.TENANT, Scope.ANALYTICS_READ),
    "getActivity": Policy(Level.TENANT, Scope.ANALYTICS_READ),
    "getRuleActivity": Policy(Level.TENANT, Scope.ANALYTICS_READ),
    "listStatements": Policy(Level.TENANT, Scope.ANALYTICS_READ),
    "getTimeline": Policy(Level.TENANT, Scope.ANALYTICS_READ, also=Scope.CONFIG_READ),
    "previewInvalidation": Policy(Level.TENANT, Scope.CACHE_ADMIN),
    "previewTableInvalidation": Policy(Level.TENANT, Scope.CACHE_ADMIN),
    # Digests
    "getDailyDigest": Policy(Level.TENANT, Scope.ANALYTICS_READ),
    "getWeeklyDigest": Policy(Level.TENANT, Scope.ANALYTICS_READ),
    "listModelExchanges": Policy(
        Level.TENANT, Scope.CONFIG_READ, notes="owners of the tenant and platform admins"
    ),
    "listDigestPreferences": Policy(Level.SELF, Scope.USERS_READ),
    "setDigestPreference": Policy(Level.SELF, Scope.USERS_WRITE),
    "showUnsubscribe": PUBLIC,
    "unsubscribe": PUBLIC,
    # Alerts
    "listAlerts": Policy(Level.TENANT, Scope.ANALYTICS_READ),
    "createAlert": Policy(Level.TENANT, Scope.CONFIG_WRITE),
    "getAlert": Policy(Level.TENANT, Scope.ANALYTICS_READ),
    "replaceAlert": Policy(Level.TENANT, Scope.CONFIG_WRITE),
    "deleteAlert": Policy(Level.TENANT, Scope.CONFIG_WRITE),
    "testAlert": Policy(Level.TENANT, Scope.CONFIG_WRITE),
    "listAlertHistory": Policy(Level.TENANT, Scope.ANALYTICS_READ),
    "listAlertDeliveries": Policy(Level.TENANT, Scope.ANALYTICS_READ),
    # Raw logs and SQL
    "notifyLogs": Policy(Level.TENANT, Scope.LOGS_NOTIFY),
    "listLogYears": Policy(Level.TENANT, Scope.LOGS_READ),
    "explainLoggedRequest": Policy(Level.TENANT, Scope.LOGS_READ),
    "listLogMonths": Policy(Level.TENANT, Scope.LOGS_READ),
    "listLogDays": Policy(Level.TENANT, Scope.LOGS_READ),
    "listLogHours": Policy(Level.TENANT, Scope.LOGS_READ),
    "listLogFiles": Policy(Level.TENANT, Scope.LOGS_READ),
    "getLogObject": Policy(Level.TENANT, Scope.LOGS_READ),
    "getQuerySchema": Policy(Level.TENANT, Scope.LOGS_QUERY),
    "queryLogs": Policy(Level.TENANT, Scope.LOGS_QUERY),
    "listRequests": Policy(Level.TENANT, Scope.LOGS_QUERY),
    # The first hour
    "getSetup": Policy(Level.TENANT, Scope.CONFIG_READ),
    "getVerdict": Policy(Level.TENANT, Scope.ANALYTICS_READ),
    "listTenantWeeks": Policy(
        Level.SERVICE, Scope.ANALYTICS_READ, notes="lists the tenants on which the PAT has the scope"
    ),
}
