"""Who may do what, written by hand. Deliberately not derived from the routes, which it checks."""

from __future__ import annotations

from typing import Final

SIGNED_IN: Final = frozenset(
    {
        *("guest", "user", "member", "tenant admin", "owner", "guest owner", "platform admin"),
        *("grant", "expired grant", "revoked grant", "auditor"),
        *("staff", "staff with access", "support", "support with access"),
    }
)
SCOPED: Final = frozenset(
    f"PAT {scope}"
    for scope in (
        *("analytics:numbers", "analytics:read", "analytics:users", "cache-admin"),
        *("config:read", "config:write"),
        *("logs:notify", "logs:query", "logs:read", "tos:publish", "users:read", "users:write"),
    )
)
WILDCARD: Final = frozenset({"wildcard PAT", "wildcard account PAT"})
ACCOUNT: Final = frozenset({"account PAT"})
ELSEWHERE: Final = frozenset({"PAT of another tenant"})
#: Has three scopes, which some operations need together.
ANALYST: Final = frozenset({"PAT of an analyst"})
ANALYST_SCOPES: Final = ("analytics:read", "config:read", "logs:query")
#: Has a grant of these two, and a token with what the grant gives.
AUDITOR: Final = frozenset({"PAT of an auditor"})
AUDITOR_SCOPES: Final = ("analytics:numbers", "config:read")
EVERY_PAT: Final = SCOPED | WILDCARD | ACCOUNT | ELSEWHERE | ANALYST | AUDITOR
ADMINS: Final = frozenset({"platform admin"}) | WILDCARD


def pat(scope: str) -> frozenset[str]:
    """PATs that hold ``scope`` on the tenant."""
    analyst = ANALYST if scope in ANALYST_SCOPES else frozenset[str]()
    auditor = AUDITOR if scope in AUDITOR_SCOPES else frozenset[str]()
    return frozenset({f"PAT {scope}"}) | WILDCARD | ACCOUNT | analyst | auditor


#: The numbers without statements: `analytics:read` gives them too.
NUMBERS: Final = pat("analytics:numbers") | pat("analytics:read")

TENANT_READ: Final = pat("config:read") | {
    *("member", "tenant admin", "owner", "guest owner", "platform admin", "grant", "auditor"),
}
TENANT_WRITE: Final = pat("config:write") | {"tenant admin", "owner", "platform admin", "grant"}
MEMBERS: Final = frozenset({"member", "tenant admin", "owner", "guest owner"})
ACCOUNT_WRITE: Final = ADMINS | ACCOUNT | {"owner"}
ACCOUNT_READ: Final = ACCOUNT_WRITE | {"guest owner"}
USER_READ: Final = pat("users:read") | {
    *("tenant admin", "owner", "guest owner", "platform admin", "grant"),
}
OWN_READ: Final = SIGNED_IN | pat("users:read") | ELSEWHERE
OWN_WRITE: Final = SIGNED_IN | pat("users:write") | ELSEWHERE
LISTS: Final = SIGNED_IN | pat("config:read") | ELSEWHERE

_GROUPS: Final = {
    "acknowledgeTos (own)": SIGNED_IN | {"bridge"},
    "listAcknowledgements (own) getHistoricalTos": SIGNED_IN | EVERY_PAT | {"bridge"},
    "acknowledgeTos listAcknowledgements": frozenset[str](),
    "publishTos": WILDCARD,
    "listUsers listGrants getGrant listEvents": OWN_READ,
    "getUser getRoles getMemberships": USER_READ,
    "getUser (own) getRoles (own) getMemberships (own) listPersonalAccessTokens (own)": OWN_READ,
    "getPersonalAccessToken (own) listSessions (own) getSession (own)": OWN_READ,
    "replaceUser (own) revokePersonalAccessToken (own) revokeGrant": OWN_WRITE,
    "rotatePersonalAccessToken (own)": OWN_WRITE,
    "introspectToken": LISTS,
    "endSession (own) endSessions (own)": OWN_WRITE,
    "listSessions getSession endSession endSessions getPersonalAccessToken": ADMINS,
    "createPersonalAccessToken (own)": MEMBERS | ADMINS | {"support", "grant", "auditor"},
    "replaceUser listPersonalAccessTokens createPersonalAccessToken revokePersonalAccessToken": ADMINS,
    "rotatePersonalAccessToken": ADMINS,
    "deleteUser deleteUser (own) replaceRoles replaceRoles (own) mergeRoles mergeRoles (own)": ADMINS,
    "appendMemberships": pat("users:write") | {"owner", "platform admin"},
    # A platform admin cannot make itself a member. A PATCH with its present memberships changes nothing.
    "appendMemberships (own)": pat("users:write") | {"owner", "staff with access"},
    "replaceMemberships": pat("users:write") | {"owner", "platform admin"},
    "replaceMemberships (own)": pat("users:write") | ELSEWHERE | {"owner", "platform admin"},
    # A guest who owns a tenant only reads, and invitations are for owners who may write.
    "approveAccess declineAccess": frozenset({"owner"}),
    "listInvitations listAccessRequests": pat("users:read") | {"owner", "platform admin"},
    "createInvitation withdrawInvitation": pat("users:write") | {"owner", "platform admin"},
    "listOwnInvitations (own)": OWN_READ,
    "acceptInvitation (own) declineInvitation (own)": SIGNED_IN,
    "listOwnInvitations acceptInvitation declineInvitation": frozenset[str](),
    "listTenants getTenantManifest listAssessments listChanges listAccounts listFqdns getFqdn": LISTS,
    "validateRules parseWarehouse": SIGNED_IN | EVERY_PAT,
    "getTenant getTenantConfig getTenantRules": TENANT_READ,
    "listConfigHistory diffConfig getConfigRevision": TENANT_READ,
    "getSetup getAssessment": TENANT_READ,
    "explainRequest listDrafts getDraft diffDraft blameRules": TENANT_READ,
    "createDraft replaceDraft deleteDraft rebaseDraft publishDraft": TENANT_WRITE,
    "listRulesHistory diffRules getRulesRevision": TENANT_READ,
    "replaceTenantConfig replaceTenantRules restoreConfig restoreRules": TENANT_WRITE,
    "deleteTenant restoreTenant": TENANT_WRITE - {"tenant admin", "grant"},
    "createAccount deleteAccount": ADMINS,
    "createTenant createGrant adoptAssessment": ACCOUNT_WRITE,
    "getAccount listDomains getDomain": ACCOUNT_READ,
    "listAccountHistory diffAccount getAccountRevision": ACCOUNT_READ,
    "replaceAccount registerDomain deleteDomain verifyDomain": ACCOUNT_WRITE,
    "getCacheMetadata replaceCacheMetadata deleteCacheMetadata invalidateRules": pat("cache-admin"),
    "listCacheMetadata replaceManyCacheMetadata invalidateTables": pat("cache-admin"),
    "pollMarkers": pat("cache-admin") | {"PAT of another tenant"},
    "listTenantWeeks": NUMBERS | {"PAT of another tenant"},
    "listMarkers createMarker getMarker replaceMarker deleteMarker": pat("cache-admin"),
    "getYearlySummary getMonthlySummary getRuleEffectiveness getVerdict": NUMBERS,
    "getDailySummary getCacheOpportunities": pat("analytics:read"),
    "getUsersSummary getUserYearlySummary": pat("analytics:users"),
    "getUserMonthlySummary getUserDailySummary": pat("analytics:users"),
    "listLogYears listLogMonths listLogDays listLogHours": MEMBERS | {"PAT logs:read"},
    "listLogFiles getLogObject explainLoggedRequest": MEMBERS | {"PAT logs:read"},
    "queryLogs getQuerySchema listRequests getRequestHistogram": MEMBERS | {"PAT logs:query"} | ANALYST,
    "notifyLogs": pat("logs:notify") | {"tenant admin", "owner", "platform admin"},
    "listReplays getReplay": TENANT_READ,
    "requestReplay cancelReplay": TENANT_WRITE,
    "listRecommendations getRecommendation getRecommendationEffect": NUMBERS,
    "requestRecommendations": pat("analytics:read"),
    "draftRecommendation draftRecommendations acceptRecommendation": WILDCARD | ACCOUNT,
    "dismissRecommendation reopenRecommendation": WILDCARD | ACCOUNT,
    "listPublishedQueries": SIGNED_IN | EVERY_PAT,
    "verifyDocument": ANALYST,
    "getSavings getActivity getRuleActivity listPrograms": NUMBERS,
    "getStaleReport listStatements": pat("analytics:read"),
    "getLeaksReport listUserActivity": frozenset({"PAT analytics:users"}),
    "getTimeline": ANALYST | AUDITOR | WILDCARD | ACCOUNT,
    "previewInvalidation previewTableInvalidation": pat("cache-admin"),
    "getDailyDigest getWeeklyDigest": NUMBERS,
    "listAlerts getAlert listAlertHistory listAlertDeliveries": pat("analytics:read"),
    "createAlert replaceAlert deleteAlert testAlert testAlertChannels rotateAlertSecret": TENANT_WRITE,
    "listModelExchanges": pat("config:read") - AUDITOR | {"owner", "platform admin"},
    "listDigestPreferences (own)": OWN_READ,
    "setDigestPreference (own)": OWN_WRITE,
    "listDigestPreferences setDigestPreference": frozenset[str](),
}

#: What needs, where staff must have a second factor, a proof of the last minutes and a reason from a platform
#: admin. Creating a PAT of its own does not, unless the PAT has a wildcard.
PROVEN: Final = frozenset(
    {
        *("deleteUser", "deleteUser (own)", "replaceRoles", "replaceRoles (own)"),
        *("mergeRoles", "mergeRoles (own)", "appendMemberships", "replaceMemberships"),
        *("createPersonalAccessToken", "revokePersonalAccessToken"),
        *("endSession", "endSessions", "replaceUser", "createInvitation"),
        *("createAccount", "deleteAccount", "replaceAccount", "createGrant"),
    }
)


def _labels(group: str) -> list[str]:
    return group.replace(" (own)", "(own)").split()


def _and_staff(callers: frozenset[str]) -> frozenset[str]:
    """Add staff in the dashboard: they may do what a platform admin may, and with access what a member may.

    Support there reads configuration, rules and history.
    """
    staff = set[str]()
    if "platform admin" in callers:
        staff |= {"staff", "staff with access"}
    if "member" in callers:
        staff |= {"staff with access", "support with access"}
    if callers >= TENANT_READ:
        staff |= {"support", "support with access"}
    return callers | staff


#: What staff in the dashboard do only with a reason: each write on a tenant or an account.
WITH_REASON: Final = frozenset(
    {
        *(
            "createInvitation",
            "withdrawInvitation",
            "deleteTenant",
            "restoreTenant",
            "adoptAssessment",
            "replaceTenantConfig",
        ),
        *("replaceTenantRules", "restoreConfig", "restoreRules", "createDraft", "replaceDraft"),
        *(
            "deleteDraft",
            "rebaseDraft",
            "publishDraft",
            "createAlert",
            "replaceAlert",
            "deleteAlert",
            "testAlert",
            "testAlertChannels",
            "rotateAlertSecret",
        ),
        *(
            "notifyLogs",
            "approveAccess",
            "declineAccess",
            "replaceAccount",
            "registerDomain",
            "deleteDomain",
            "verifyDomain",
        ),
    }
)

#: Operation, with ``(own)`` where the caller asks about itself, to the callers whom it lets through.
EXPECTED: Final = {
    label.replace("(own)", " (own)"): _and_staff(callers)
    for group, callers in _GROUPS.items()
    for label in _labels(group)
}
