"""The links between operations of this app."""

from __future__ import annotations

from typing import Final

from tenantadmin.lib.http.links import BODY, ETAG, FIRST, PATH, Step

_ACCOUNT_READS: Final = ("getAccount", "listAccountHistory", "listDomains")
_USER_READS: Final = ("getUser", "getRoles", "getMemberships", "listPersonalAccessTokens")

STEPS: Final = (
    Step("listTenants", ("getTenant", "getTenantConfig", "listConfigHistory"), {"tenant": FIRST}),
    Step("listAccounts", _ACCOUNT_READS, {"account": FIRST}),
    Step(
        "listUsers",
        (*_USER_READS, "mergeRoles", "appendMemberships", "replaceMemberships"),
        {"email": f"{BODY}_links/items/0/email"},
    ),
    Step("listUsers", ("listSessions",), {"email": f"{BODY}_links/items/0/email"}),
    Step("listSessions", ("endSession",), {"email": f"{PATH}email", "session_id": FIRST}),
    Step(
        "createAccount",
        (*_ACCOUNT_READS, "registerDomain", "deleteAccount"),
        {"account": f"{BODY}accountId"},
    ),
    Step("createAccount", ("createTenant",), {}, {"accountId": f"{BODY}accountId"}),
    Step("getAccount", ("getAccountRevision",), {"account": f"{BODY}accountId", "seq": f"{BODY}seq"}),
    Step(
        "getAccount",
        ("replaceAccount",),
        {"account": f"{BODY}accountId", "If-Match": ETAG},
        {"name": f"{BODY}name", "owners": f"{BODY}owners", "seq": f"{BODY}seq"},
    ),
    Step("listAccountHistory", ("getAccountRevision",), {"account": f"{PATH}account", "seq": FIRST}),
    Step(
        "replaceAccount",
        ("diffAccount",),
        {"account": f"{BODY}accountId", "from": "0", "to": f"{BODY}seq"},
    ),
    Step("getTenant", ("getTenantConfig", "deleteTenant", "listFqdns"), {"tenant": f"{BODY}tenantId"}),
    Step("listFqdns", ("getFqdn",), {"fqdn": FIRST}),
    Step("createTenant", ("getTenant", "getTenantConfig", "deleteTenant"), {"tenant": f"{BODY}tenantId"}),
    Step(
        "getTenantConfig",
        ("replaceTenantConfig",),
        {"tenant": f"{BODY}tenantId", "If-Match": ETAG},
        {
            "accountId": f"{BODY}accountId",
            "tenantName": f"{BODY}tenantName",
            "tenantId": f"{BODY}tenantId",
            "createdAt": f"{BODY}createdAt",
            "seq": f"{BODY}seq",
        },
    ),
    Step(
        "replaceTenantConfig",
        ("getConfigRevision", "restoreConfig"),
        {"tenant": f"{BODY}tenantId", "seq": f"{BODY}seq"},
    ),
    Step("replaceTenantConfig", ("listConfigHistory",), {"tenant": f"{BODY}tenantId"}),
    Step(
        "replaceTenantConfig",
        ("diffConfig",),
        {"tenant": f"{BODY}tenantId", "from": f"{BODY}seq", "to": f"{BODY}seq"},
    ),
    Step("replaceTenantConfig", ("listChanges",), {"kind": "config"}),
    Step(
        "listConfigHistory",
        ("getConfigRevision", "restoreConfig"),
        {"tenant": f"{PATH}tenant", "seq": FIRST},
    ),
    Step("deleteTenant", ("getTenantManifest",), {"includeDeleted": "true"}),
    Step("deleteTenant", ("listConfigHistory",), {"tenant": f"{PATH}tenant"}),
    Step(
        "replaceUser",
        (
            *_USER_READS,
            "replaceRoles",
            "mergeRoles",
            "appendMemberships",
            "createPersonalAccessToken",
            "deleteUser",
        ),
        {"email": f"{BODY}email"},
    ),
    Step(
        "createPersonalAccessToken",
        ("revokePersonalAccessToken",),
        {"email": f"{PATH}email", "pat_id": f"{BODY}id"},
    ),
    Step(
        "createPersonalAccessToken",
        ("exchangeToken",),
        {},
        {"grant_type": "pat_exchange", "pat": f"{BODY}token"},
    ),
    Step("createGrant", ("revokeGrant",), {"grant": f"{BODY}id"}),
    Step("listGrants", ("revokeGrant",), {"grant": FIRST}),
    Step(
        "registerDomain",
        ("getDomain", "verifyDomain", "deleteDomain"),
        {"account": f"{PATH}account", "domain": f"{BODY}domain"},
    ),
    Step("listDomains", ("getDomain",), {"account": f"{PATH}account", "domain": FIRST}),
)
