"""The links to and between operations of this app."""

from __future__ import annotations

from typing import Final

from tenantadmin.lib.http.links import BODY, ETAG, FIRST, PATH, Step

_OF_TENANT: Final = ("getTenantRules", "replaceTenantRules", "listRulesHistory", "listMarkers")
_OF_DRAFT: Final = ("getDraft", "diffDraft", "publishDraft", "deleteDraft")
_OF_MARKER: Final = ("getMarker", "replaceMarker", "deleteMarker")

STEPS: Final = (
    Step("listTenants", _OF_TENANT, {"tenant": FIRST}),
    Step("createTenant", _OF_TENANT, {"tenant": f"{BODY}tenantId"}),
    Step(
        "getTenant",
        ("listMarkers", "createMarker", "replaceCacheMetadata"),
        {"tenant": f"{BODY}tenantId"},
    ),
    Step("getTenant", ("listDrafts", "createDraft"), {"tenant": f"{BODY}tenantId"}),
    Step("listDrafts", ("getDraft",), {"tenant": f"{PATH}tenant", "draft": FIRST}),
    Step("createDraft", _OF_DRAFT, {"tenant": f"{BODY}tenantId", "draft": f"{BODY}draftId"}),
    Step(
        "getDraft",
        ("replaceDraft",),
        {"tenant": f"{BODY}tenantId", "draft": f"{BODY}draftId", "If-Match": ETAG},
        {"rules": f"{BODY}rules"},
    ),
    Step("deleteTenant", ("listRulesHistory",), {"tenant": f"{PATH}tenant"}),
    Step(
        "getTenantRules",
        ("replaceTenantRules",),
        {"tenant": f"{BODY}tenantId", "If-Match": ETAG},
        {
            "tenantId": f"{BODY}tenantId",
            "seq": f"{BODY}seq",
            "cacheBust": f"{BODY}cacheBust",
            "rules": f"{BODY}rules",
        },
    ),
    Step("replaceTenantRules", ("validateRules",), {}, {"rules": f"{BODY}rules"}),
    Step(
        "replaceTenantRules",
        ("getRulesRevision", "restoreRules"),
        {"tenant": f"{BODY}tenantId", "seq": f"{BODY}seq"},
    ),
    Step(
        "replaceTenantRules",
        ("diffRules",),
        {"tenant": f"{BODY}tenantId", "from": f"{BODY}seq", "to": f"{BODY}seq"},
    ),
    Step(
        "replaceTenantRules",
        ("createMarker",),
        {"tenant": f"{BODY}tenantId"},
        {"targetRuleId": f"{BODY}rules/0/id"},
    ),
    Step(
        "replaceTenantRules",
        ("invalidateRules",),
        {"tenant": f"{BODY}tenantId", "rule": f"{BODY}rules/0/id"},
    ),
    Step(
        "replaceTenantRules",
        ("replaceCacheMetadata",),
        {"tenant": f"{BODY}tenantId"},
        {"ruleId": f"{BODY}rules/0/id"},
    ),
    Step(
        "listRulesHistory",
        ("getRulesRevision", "restoreRules"),
        {"tenant": f"{PATH}tenant", "seq": FIRST},
    ),
    Step("restoreRules", ("listChanges",), {"kind": "rules"}),
    Step("createMarker", _OF_MARKER, {"tenant": f"{PATH}tenant", "marker": f"{BODY}markerId"}),
    Step("listMarkers", _OF_MARKER, {"tenant": f"{PATH}tenant", "marker": FIRST}),
    Step("invalidateRules", ("listMarkers",), {"tenant": f"{PATH}tenant", "status": "active"}),
    Step(
        "replaceCacheMetadata",
        ("getCacheMetadata",),
        {"tenant": f"{PATH}tenant", "cachekey": f"{BODY}cacheKey"},
    ),
)
