"""Which answers lead on to which operations: the ``links`` of the contract, as one table.

They say where a path parameter comes from: an id in the body of an answer, or in the path that was asked.
Contract: Versioning.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_SAME: Final = "$request.path."
_BODY: Final = "$response.body#/"


@dataclass(frozen=True, slots=True)
class Step:
    """From an operation to others, with the parameters and the body members that they take over."""

    source: str
    targets: tuple[str, ...]
    parameters: Mapping[str, str]
    body: Mapping[str, str] | None = None

    def links(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the link objects by the name of the operation that each leads to."""
        for target in self.targets:
            link: dict[str, Any] = {"operationId": target, "parameters": dict(self.parameters)}
            if self.body is not None:
                link["requestBody"] = dict(self.body)
            yield target, link


_ACCOUNT_READS: Final = ("getAccount", "listAccountHistory", "listDomains")
_TENANT_READS: Final = ("getTenant", "getTenantConfig", "getTenantRules", "listRulesHistory", "listMarkers")
_USER_READS: Final = ("getUser", "getRoles", "getMemberships", "listPersonalAccessTokens")
_FIRST: Final = f"{_BODY}_links/items/0/name"
_ETAG: Final = "$response.header.ETag"

STEPS: Final = (
    Step("listTenants", (*_TENANT_READS, "replaceTenantRules", "listConfigHistory"), {"tenant": _FIRST}),
    Step("listAccounts", _ACCOUNT_READS, {"account": _FIRST}),
    Step(
        "listUsers",
        (*_USER_READS, "mergeRoles", "appendMemberships", "replaceMemberships"),
        {"email": f"{_BODY}_links/items/0/email"},
    ),
    Step(
        "createAccount",
        (*_ACCOUNT_READS, "registerDomain", "deleteAccount"),
        {"account": f"{_BODY}accountId"},
    ),
    Step("createAccount", ("createTenant",), {}, {"accountId": f"{_BODY}accountId"}),
    Step("getAccount", ("getAccountRevision",), {"account": f"{_BODY}accountId", "seq": f"{_BODY}seq"}),
    Step(
        "getAccount",
        ("replaceAccount",),
        {"account": f"{_BODY}accountId", "If-Match": _ETAG},
        {"name": f"{_BODY}name", "owners": f"{_BODY}owners", "seq": f"{_BODY}seq"},
    ),
    Step("listAccountHistory", ("getAccountRevision",), {"account": f"{_SAME}account", "seq": _FIRST}),
    Step(
        "replaceAccount",
        ("diffAccount",),
        {"account": f"{_BODY}accountId", "from": "0", "to": f"{_BODY}seq"},
    ),
    Step(
        "getTenant",
        (
            "getTenantConfig",
            "deleteTenant",
            "listMarkers",
            "createMarker",
            "replaceCacheMetadata",
            "getYearlySummary",
            "getUsersSummary",
            "listLogMonths",
            "queryLogs",
        ),
        {"tenant": f"{_BODY}tenantId"},
    ),
    Step("getTenant", ("listFqdns",), {"tenant": f"{_BODY}tenantId"}),
    Step("listFqdns", ("getFqdn",), {"fqdn": _FIRST}),
    Step("createTenant", (*_TENANT_READS, "deleteTenant"), {"tenant": f"{_BODY}tenantId"}),
    Step("createTenant", ("replaceTenantRules",), {"tenant": f"{_BODY}tenantId"}),
    Step(
        "getTenantRules",
        ("replaceTenantRules",),
        {"tenant": f"{_BODY}tenantId", "If-Match": _ETAG},
        {
            "tenantId": f"{_BODY}tenantId",
            "seq": f"{_BODY}seq",
            "cacheBust": f"{_BODY}cacheBust",
            "rules": f"{_BODY}rules",
        },
    ),
    Step(
        "getTenantConfig",
        ("replaceTenantConfig",),
        {"tenant": f"{_BODY}tenantId", "If-Match": _ETAG},
        {
            "accountId": f"{_BODY}accountId",
            "tenantName": f"{_BODY}tenantName",
            "tenantId": f"{_BODY}tenantId",
            "createdAt": f"{_BODY}createdAt",
            "seq": f"{_BODY}seq",
        },
    ),
    Step(
        "replaceTenantConfig",
        ("getConfigRevision", "restoreConfig"),
        {"tenant": f"{_BODY}tenantId", "seq": f"{_BODY}seq"},
    ),
    Step("replaceTenantConfig", ("listConfigHistory",), {"tenant": f"{_BODY}tenantId"}),
    Step(
        "replaceTenantConfig",
        ("diffConfig",),
        {"tenant": f"{_BODY}tenantId", "from": f"{_BODY}seq", "to": f"{_BODY}seq"},
    ),
    Step(
        "replaceTenantRules",
        ("getRulesRevision", "restoreRules"),
        {"tenant": f"{_BODY}tenantId", "seq": f"{_BODY}seq"},
    ),
    Step(
        "replaceTenantRules",
        ("diffRules",),
        {"tenant": f"{_BODY}tenantId", "from": f"{_BODY}seq", "to": f"{_BODY}seq"},
    ),
    Step(
        "listRulesHistory",
        ("getRulesRevision", "restoreRules"),
        {"tenant": f"{_SAME}tenant", "seq": _FIRST},
    ),
    Step(
        "listConfigHistory",
        ("getConfigRevision", "restoreConfig"),
        {"tenant": f"{_SAME}tenant", "seq": _FIRST},
    ),
    Step("replaceTenantConfig", ("listChanges",), {"kind": "config"}),
    Step("restoreRules", ("listChanges",), {"kind": "rules"}),
    Step("replaceTenantRules", ("validateRules",), {}, {"rules": f"{_BODY}rules"}),
    Step(
        "replaceTenantRules",
        ("createMarker",),
        {"tenant": f"{_BODY}tenantId"},
        {"targetRuleId": f"{_BODY}rules/0/id"},
    ),
    Step(
        "replaceTenantRules",
        ("invalidateRules",),
        {"tenant": f"{_BODY}tenantId", "rule": f"{_BODY}rules/0/id"},
    ),
    Step(
        "replaceTenantRules",
        ("replaceCacheMetadata",),
        {"tenant": f"{_BODY}tenantId"},
        {"ruleId": f"{_BODY}rules/0/id"},
    ),
    Step(
        "createMarker",
        ("getMarker", "replaceMarker", "deleteMarker"),
        {"tenant": f"{_SAME}tenant", "marker": f"{_BODY}markerId"},
    ),
    Step(
        "listMarkers",
        ("getMarker", "replaceMarker", "deleteMarker"),
        {"tenant": f"{_SAME}tenant", "marker": _FIRST},
    ),
    Step("invalidateRules", ("listMarkers",), {"tenant": f"{_SAME}tenant", "status": "active"}),
    Step(
        "replaceCacheMetadata",
        ("getCacheMetadata",),
        {"tenant": f"{_SAME}tenant", "cachekey": f"{_BODY}cacheKey"},
    ),
    Step("deleteTenant", ("getTenantManifest",), {"includeDeleted": "true"}),
    Step("deleteTenant", ("listRulesHistory", "listConfigHistory"), {"tenant": f"{_SAME}tenant"}),
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
        {"email": f"{_BODY}email"},
    ),
    Step(
        "createPersonalAccessToken",
        ("revokePersonalAccessToken",),
        {"email": f"{_SAME}email", "pat_id": f"{_BODY}id"},
    ),
    Step(
        "createPersonalAccessToken",
        ("exchangeToken",),
        {},
        {"grant_type": "pat_exchange", "pat": f"{_BODY}token"},
    ),
    Step("createGrant", ("revokeGrant",), {"grant": f"{_BODY}id"}),
    Step("listGrants", ("revokeGrant",), {"grant": _FIRST}),
    Step(
        "registerDomain",
        ("getDomain", "verifyDomain", "deleteDomain"),
        {"account": f"{_SAME}account", "domain": f"{_BODY}domain"},
    ),
    Step("listDomains", ("getDomain",), {"account": f"{_SAME}account", "domain": _FIRST}),
    Step("publishTos", ("getTos",), {}),
    Step("publishTos", ("getHistoricalTos",), {"md5": f"{_BODY}hash"}),
    Step("publishTos", ("acknowledgeTos",), {}, {"markdown": "$request.body#/markdown"}),
    Step("acknowledgeTos", ("listAcknowledgements",), {"email": f"{_SAME}email"}),
    Step("getTos", ("getHistoricalTos",), {"md5": "$response.header.X-Tos-Hash"}),
    Step(
        "getYearlySummary",
        ("getMonthlySummary", "getRuleEffectiveness", "getCacheOpportunities"),
        {"tenant": f"{_SAME}tenant", "year": f"{_SAME}year"},
    ),
    Step(
        "getMonthlySummary",
        ("getDailySummary",),
        {"tenant": f"{_SAME}tenant", "year": f"{_SAME}year", "month": f"{_SAME}month"},
    ),
    Step(
        "getUsersSummary",
        ("getUserYearlySummary", "getUserMonthlySummary", "getUserDailySummary"),
        {"tenant": f"{_SAME}tenant", "userId": f"{_BODY}users/0/userId"},
    ),
    *(
        Step(
            source,
            (target,),
            {**{name: f"{_SAME}{name}" for name in ("tenant", *levels[:-1])}, levels[-1]: _FIRST},
        )
        for source, target, levels in (
            ("listLogMonths", "listLogDays", ("year", "month")),
            ("listLogDays", "listLogHours", ("year", "month", "day")),
            ("listLogHours", "listLogFiles", ("year", "month", "day", "hour")),
            ("listLogFiles", "getLogObject", ("year", "month", "day", "hour", "file")),
        )
    ),
)


def add_links(paths: Mapping[str, Any]) -> None:
    """Write the links of `STEPS` into the good answers of their operations among a contract's ``paths``.

    Raises:
        KeyError: a step names an operation that the contract has not.
    """
    operations = {
        operation["operationId"]: operation for item in paths.values() for operation in item.values()
    }
    for step in STEPS:
        responses = operations[step.source]["responses"]
        good = [answer for status, answer in responses.items() if status.startswith("2")]
        for target, link in step.links():
            link["operationId"] = operations[target]["operationId"]
            for answer in good:
                answer.setdefault("links", {})[target] = link
