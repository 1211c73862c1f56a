"""Every link of the contract leads on, as it is written. Contract: States and transitions."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pytest

from tests.contract import fuzzing, seeding

if TYPE_CHECKING:
    from collections.abc import Mapping

    from schemathesis.core.transport import Response

    from tests.contract.fuzzing import Request

#: From what is made to what is done with it: the answer, the operation, the body beside the link's.
Way: TypeAlias = tuple[tuple[str, str, dict[str, Any] | list[Any] | None], ...]
TENANT: Final[Way] = (
    ("createAccount", "getAccount", None),
    ("getAccount", "getAccountRevision", None),
    ("createAccount", "listAccountHistory", None),
    ("createAccount", "registerDomain", {"domain": "example.com"}),
    ("registerDomain", "getDomain", None),
    ("registerDomain", "deleteDomain", None),
    ("createAccount", "createTenant", {"tenantName": "Warehouse"}),
    ("createTenant", "getTenant", None),
    ("createTenant", "getTenantConfig", None),
    ("getTenantConfig", "replaceTenantConfig", {"labels": {"a": "b"}}),
    ("replaceTenantConfig", "listConfigHistory", None),
    ("replaceTenantConfig", "diffConfig", None),
    ("replaceTenantConfig", "getConfigRevision", None),
    ("replaceTenantConfig", "restoreConfig", None),
    ("createTenant", "getTenantRules", None),
    ("createTenant", "replaceTenantRules", {"rules": seeding.RULES[::-1]}),
    ("replaceTenantRules", "validateRules", {}),
    ("createTenant", "listRulesHistory", None),
    ("replaceTenantRules", "diffRules", None),
    ("replaceTenantRules", "getRulesRevision", None),
    ("replaceTenantRules", "restoreRules", None),
    ("replaceTenantRules", "createMarker", {"markerId": "m"}),
    ("createTenant", "listMarkers", None),
    ("createMarker", "getMarker", None),
    ("createMarker", "replaceMarker", {"metadata": {"reason": "loaded again"}}),
    ("createMarker", "deleteMarker", None),
    ("replaceTenantRules", "invalidateRules", {"statement": "DELETE FROM a"}),
    ("replaceTenantRules", "replaceCacheMetadata", {}),
    ("replaceCacheMetadata", "getCacheMetadata", None),
    ("createTenant", "deleteTenant", None),
    ("deleteTenant", "getTenantManifest", None),
    ("deleteTenant", "listRulesHistory", None),
    ("createAccount", "deleteAccount", None),
)
USER: Final[Way] = (
    ("replaceUser", "getUser", None),
    ("replaceUser", "replaceRoles", {"primary": "admin"}),
    ("replaceUser", "mergeRoles", {"scopes": []}),
    ("replaceUser", "getRoles", None),
    ("replaceUser", "getMemberships", None),
    ("replaceUser", "createPersonalAccessToken", {"name": "x", "scopes": ["config:read"], "tenants": ["*"]}),
    ("replaceUser", "listPersonalAccessTokens", None),
    ("createPersonalAccessToken", "revokePersonalAccessToken", None),
    ("replaceUser", "deleteUser", None),
)
#: From lists to what they name, as the service was seeded.
LISTED: Final[Way] = (
    ("listTenants", "getTenant", None),
    ("listTenants", "getTenantConfig", None),
    ("listTenants", "getTenantRules", None),
    ("listTenants", "listRulesHistory", None),
    ("listTenants", "listConfigHistory", None),
    ("listTenants", "listMarkers", None),
    ("getTenantRules", "replaceTenantRules", {}),
    ("listTenants", "replaceTenantRules", {"rules": seeding.RULES[::-1]}),
    ("listRulesHistory", "getRulesRevision", None),
    ("listRulesHistory", "restoreRules", None),
    ("restoreRules", "listChanges", None),
    ("replaceTenantRules", "invalidateRules", {"statement": "DELETE FROM a"}),
    ("invalidateRules", "listMarkers", None),
    ("getTenant", "getTenantConfig", None),
    ("getTenantConfig", "replaceTenantConfig", {"fqdns": ["linked.gateway.localhost"]}),
    ("replaceTenantConfig", "listChanges", None),
    ("listConfigHistory", "getConfigRevision", None),
    ("listConfigHistory", "restoreConfig", None),
    ("getTenant", "listMarkers", None),
    ("listMarkers", "getMarker", None),
    ("listMarkers", "replaceMarker", {"metadata": {"reason": "loaded again"}}),
    ("listMarkers", "deleteMarker", None),
    ("getTenant", "createMarker", {"markerId": "m9", "targetRuleId": "orders"}),
    ("getTenant", "replaceCacheMetadata", {"ruleId": "orders"}),
    ("getTenant", "getYearlySummary", None),
    ("getYearlySummary", "getRuleEffectiveness", None),
    ("getYearlySummary", "getCacheOpportunities", None),
    ("getYearlySummary", "getMonthlySummary", None),
    ("getYearlySummary", "getWeeklyDigest", None),
    ("getMonthlySummary", "getDailySummary", None),
    ("getDailySummary", "getDailyDigest", None),
    ("getTenant", "getUsersSummary", None),
    ("getUsersSummary", "getUserYearlySummary", None),
    ("getUsersSummary", "getUserMonthlySummary", None),
    ("getUsersSummary", "getUserDailySummary", None),
    ("getTenant", "listLogYears", None),
    ("listLogYears", "listLogMonths", None),
    ("listLogMonths", "listLogDays", None),
    ("listLogDays", "listLogHours", None),
    ("listLogHours", "listLogFiles", None),
    ("listLogFiles", "getLogObject", None),
    ("getTenant", "queryLogs", {"sql": seeding.STATEMENTS[0]}),
    ("getTenant", "getQuerySchema", None),
    ("getTenant", "listRecommendations", None),
    ("listRecommendations", "getRecommendation", None),
    ("getTenant", "requestRecommendations", None),
    ("getTenant", "listDrafts", None),
    ("listDrafts", "getDraft", None),
    ("getTenant", "createDraft", {"rules": seeding.RULES[:1]}),
    ("createDraft", "getDraft", None),
    ("getDraft", "replaceDraft", {"name": "Only orders"}),
    ("createDraft", "diffDraft", None),
    ("createDraft", "requestReplay", {"from": f"{seeding.DAY}", "to": f"{seeding.DAY}"}),
    ("requestReplay", "getReplay", None),
    ("getTenant", "listReplays", None),
    ("listReplays", "getReplay", None),
    ("requestReplay", "cancelReplay", None),
    ("createDraft", "publishDraft", None),
    ("getTenant", "createDraft", {}),
    ("createDraft", "deleteDraft", None),
    ("getTenant", "deleteTenant", None),
    ("deleteTenant", "listConfigHistory", None),
)
ADMINISTERED: Final[Way] = (
    ("listAccounts", "getAccount", None),
    ("createAccount", "getAccount", None),
    ("getAccount", "replaceAccount", {}),
    ("replaceAccount", "diffAccount", None),
    ("listAccounts", "listAccountHistory", None),
    ("listAccountHistory", "getAccountRevision", None),
    ("createAccount", "listDomains", None),
    ("createAccount", "registerDomain", {"domain": "example.net"}),
    ("registerDomain", "verifyDomain", {"manual": True}),
    ("listAccounts", "listDomains", None),
    ("listDomains", "getDomain", None),
    ("getTenant", "listFqdns", None),
    ("listFqdns", "getFqdn", None),
    ("listGrants", "revokeGrant", None),
    ("createGrant", "revokeGrant", None),
    ("listUsers", "getUser", None),
    ("listUsers", "getRoles", None),
    ("listUsers", "mergeRoles", {"scopes": []}),
    ("listUsers", "listSessions", None),
    ("listSessions", "endSession", None),
    ("listUsers", "getMemberships", None),
    ("listUsers", "replaceMemberships", []),
    ("listUsers", "appendMemberships", []),
    ("listUsers", "listPersonalAccessTokens", None),
    ("replaceUser", "appendMemberships", []),
    ("createPersonalAccessToken", "exchangeToken", {}),
)
TERMS: Final[Way] = (
    ("publishTos", "getTos", None),
    ("publishTos", "getHistoricalTos", None),
    ("getTos", "getHistoricalTos", None),
)
ACKNOWLEDGED: Final[Way] = (
    ("publishTos", "acknowledgeTos", {}),
    ("acknowledgeTos", "listAcknowledgements", None),
)
FOLLOWED: Final = {
    (source, target)
    for way in (TENANT, USER, LISTED, ADMINISTERED, TERMS, ACKNOWLEDGED)
    for source, target, _ in way
}
#: What no answer holds, because the caller chooses it.
CHOSEN: Final = {
    "cachekey": "k9",
    "year": f"{seeding.DAY:%Y}",
    "month": f"{seeding.DAY:%m}",
    "day": f"{seeding.DAY:%d}",
    "week": f"{seeding.DAY:%V}",
    "email": "member@example.org",
}


class Walk:
    """Follows links: every request is what a link of the contract makes of an answer before."""

    def __init__(self, token: str | None) -> None:
        self.operations = {
            operation.definition.raw["operationId"]: operation
            for operation in fuzzing.operations(fuzzing.load_contract())
        }
        self.token = token
        self.requests = 0
        self.answers: dict[str, Any] = {}
        self._asked: dict[str, tuple[Request, Response]] = {}

    def send(
        self, name: str, *, parameters: Mapping[str, Any] = MappingProxyType({}), body: Any = None
    ) -> None:
        operation = self.operations[name]
        declared = {entry["name"]: entry["in"] for entry in operation.definition.raw.get("parameters", ())}
        chosen = {name: value for name, value in CHOSEN.items() if declared.get(name) == "path"}
        places: dict[str, dict[str, Any]] = {"path": {}, "query": {}, "header": {}}
        for parameter, value in {**chosen, **parameters}.items():
            places[declared[parameter]][parameter] = value
        case = operation.Case(
            path_parameters=places["path"],
            query=places["query"],
            headers=places["header"],
            **({} if body is None else {"body": body, "media_type": "application/json"}),
        )
        response = fuzzing.send(case, token=self.token)
        self.requests += 1
        assert response.status_code < 300, (name, response.text)
        self._asked[name] = case, response
        self.answers[name] = response.json() if response.text.startswith(("{", "[")) else None
        if "If-None-Match" in declared:
            case.headers["If-None-Match"] = response.headers["etag"][0]
            unchanged = fuzzing.send(case, token=self.token)
            self.requests += 1
            assert (unchanged.status_code, unchanged.content) == (304, b""), name

    def follow(self, way: Way) -> None:
        for source, target, body in way:
            responses = self.operations[source].definition.raw["responses"]
            link = next(answer["links"] for answer in responses.values() if "links" in answer)[target]
            parameters = {name: self._resolve(source, value) for name, value in link["parameters"].items()}
            taken = {
                name: self._resolve(source, value) for name, value in link.get("requestBody", {}).items()
            }
            self.send(
                target, parameters=parameters, body={**taken, **body} if isinstance(body, dict) else body
            )

    def _resolve(self, source: str, expression: str) -> Any:
        asked, response = self._asked[source]
        kind, _, rest = expression.partition(".")
        match kind, rest.partition("#/"):
            case "$request", ("body", _, pointer):
                return _find(asked.body, pointer)
            case "$request", (name, _, _):
                return asked.path_parameters[name.removeprefix("path.")]
            case "$response", ("body", _, pointer):
                return _find(self.answers[source], pointer)
            case "$response", (name, _, _):
                return response.headers[name.removeprefix("header.").lower()][0]
        return expression


def _find(value: Any, pointer: str) -> Any:
    for step in pointer.split("/"):
        value = value[int(step)] if isinstance(value, list) else value[step]
    return value


def test_a_tenants_life_follows_the_links(seed: seeding.Seed, record_property: Any) -> None:
    walk = Walk(seed.wildcard)
    walk.send("createAccount", body={"name": "Linked", "owners": ["owner@example.org"], "plan": "team"})
    walk.follow(TENANT)

    tenant = walk.answers["createTenant"]["tenantId"]
    entries = walk.answers["getTenantManifest"]["_links"]["items"]
    assert [entry["deleted"] for entry in entries if entry["name"] == tenant] == [True]
    assert walk.answers["listRulesHistory"]["changes"][0]["action"] == "delete"
    record_property("requests", walk.requests)


def test_a_users_life_follows_the_links(seed: seeding.Seed, record_property: Any) -> None:
    walk = Walk(seed.wildcard)
    walk.send("replaceUser", parameters={"email": "linked@example.org"}, body={"displayName": "Ana"})
    walk.follow(USER)
    record_property("requests", walk.requests)


def test_what_a_member_lists_leads_on(seed: seeding.Seed, record_property: Any) -> None:
    walk = Walk(seed.owner_pat)
    walk.send("listTenants")
    walk.follow(LISTED)
    record_property("requests", walk.requests)


def test_what_an_administrator_lists_leads_on(seed: seeding.Seed, record_property: Any) -> None:
    walk = Walk(seed.wildcard)
    walk.send("createAccount", body={"name": "A", "owners": ["owner@example.org"]})
    walk.send("getTenant", parameters={"tenant": seed.values["tenant"][0]})
    for name in ("listAccounts", "listUsers", "listGrants"):
        walk.send(name)
    walk.send("replaceUser", parameters={"email": "linked@example.org"}, body={"displayName": "Ana"})
    grant = {"resource": "tenant", "resourceId": seed.values["tenant"][0], "permissions": ["config:read"]}
    walk.send("createGrant", body={"grantee": "member@example.org", **grant})
    body = {"name": "x", "scopes": ["config:read"], "tenants": ["*"]}
    walk.send("createPersonalAccessToken", parameters={"email": "admin@example.org"}, body=body)
    walk.follow(ADMINISTERED)
    record_property("requests", walk.requests)


def test_what_is_published_leads_on(seed: seeding.Seed, record_property: Any) -> None:
    walk = Walk(seed.wildcard)
    walk.send("publishTos", body={"markdown": "# Newer"})
    walk.follow(TERMS)
    walk.token = seed.bridge
    walk.follow(ACKNOWLEDGED)
    record_property("requests", walk.requests)


@pytest.mark.usefixtures("db")
def test_the_contract_is_asked_for_again_by_its_tag() -> None:
    walk = Walk(None)
    with fuzzing.one_connection():
        walk.send("getContract")
    assert walk.requests == 2


def test_the_feed_is_asked_for_again_by_its_tag(seed: seeding.Seed) -> None:
    walk = Walk(seed.wildcard)
    walk.send("pollMarkers")
    assert walk.requests == 2


def test_every_answer_with_a_tag_is_asked_for_again() -> None:
    published = {
        operation.definition.raw["operationId"]
        for operation in fuzzing.operations(fuzzing.load_contract())
        if "304" in operation.definition.raw["responses"]
    }
    # These two have tests of their own above.
    assert published - {target for _, target in FOLLOWED} == {"getContract", "pollMarkers"}


def test_every_link_is_followed() -> None:
    published = {
        (operation.definition.raw["operationId"], link["operationId"])
        for operation in fuzzing.operations(fuzzing.load_contract())
        for answer in operation.definition.raw["responses"].values()
        for link in answer.get("links", {}).values()
    }
    assert published == FOLLOWED
