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

STEPS: Final = (
    Step(
        "createAccount",
        (*_ACCOUNT_READS, "registerDomain", "deleteAccount"),
        {"account": f"{_BODY}accountId"},
    ),
    Step("createAccount", ("createTenant",), {}, {"accountId": f"{_BODY}accountId"}),
    Step("getAccount", ("getAccountRevision",), {"account": f"{_BODY}accountId", "seq": f"{_BODY}seq"}),
    Step("createTenant", (*_TENANT_READS, "deleteTenant"), {"tenant": f"{_BODY}tenantId"}),
    Step("createTenant", ("replaceTenantRules",), {"tenant": f"{_BODY}tenantId"}),
    Step(
        "getTenantConfig",
        ("replaceTenantConfig",),
        {"tenant": f"{_BODY}tenantId"},
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
    Step("createGrant", ("revokeGrant",), {"grant": f"{_BODY}id"}),
    Step(
        "registerDomain",
        ("getDomain", "verifyDomain", "deleteDomain"),
        {"account": f"{_SAME}account", "domain": f"{_BODY}domain"},
    ),
)


def add_links(paths: Mapping[str, Any]) -> None:
    """Write the links of `STEPS` into the first good answer of their operations among a contract's ``paths``.

    Raises:
        KeyError: a step names an operation that the contract has not.
    """
    operations = {
        operation["operationId"]: operation for item in paths.values() for operation in item.values()
    }
    for step in STEPS:
        responses = operations[step.source]["responses"]
        links = responses[next(status for status in responses if status.startswith("2"))].setdefault(
            "links", {}
        )
        for target, link in step.links():
            links[target] = {**link, "operationId": operations[target]["operationId"]}
