"""A tenant's and a user's life along the links of the contract. Contract: States and transitions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tests.contract import fuzzing

if TYPE_CHECKING:
    from schemathesis.core.transport import Response

#: From what is made to what is done with it: the answer, the operation, the body beside the link's.
TENANT: Final[tuple[tuple[str, str, dict[str, Any] | None], ...]] = (
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
    ("createTenant", "replaceTenantRules", {"rules": fuzzing.RULES[::-1]}),
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
USER: Final[tuple[tuple[str, str, dict[str, Any] | None], ...]] = (
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
#: What no answer holds, because the caller chooses it.
CHOSEN: Final = {"cachekey": "k9"}


class Walk:
    """Follows links: every request is what a link of the contract makes of an answer before."""

    def __init__(self, token: str | None) -> None:
        self.operations = {
            operation.definition.raw["operationId"]: operation
            for operation in fuzzing.operations(fuzzing.load_contract())
        }
        self.token = token
        self.requests = 0
        self._asked: dict[str, tuple[dict[str, Any], Any]] = {}

    def send(self, name: str, *, parameters: dict[str, Any], body: dict[str, Any] | None) -> Response:
        operation = self.operations[name]
        declared = {entry["name"]: entry["in"] for entry in operation.definition.raw.get("parameters", ())}
        places: dict[str, dict[str, Any]] = {"path": {}, "query": {}}
        chosen = {name: value for name, value in CHOSEN.items() if name in declared}
        for parameter, value in {**chosen, **parameters}.items():
            places[declared[parameter]][parameter] = value
        options: dict[str, Any] = {} if body is None else {"body": body, "media_type": "application/json"}
        case = operation.Case(path_parameters=places["path"], query=places["query"], **options)
        response = fuzzing.send(case, token=self.token)
        self.requests += 1
        assert response.status_code < 300, (name, response.text)
        self._asked[name] = places["path"], response.json()
        return response

    def follow(self, source: str, target: str, body: dict[str, Any] | None) -> Response:
        responses = self.operations[source].definition.raw["responses"]
        link = next(answer["links"] for answer in responses.values() if "links" in answer)[target]
        parameters = {name: self._resolve(source, value) for name, value in link["parameters"].items()}
        taken = {name: self._resolve(source, value) for name, value in link.get("requestBody", {}).items()}
        return self.send(target, parameters=parameters, body=None if body is None else {**taken, **body})

    def _resolve(self, source: str, expression: str) -> Any:
        path, answer = self._asked[source]
        if expression.startswith("$request.path."):
            return path[expression.removeprefix("$request.path.")]
        if not expression.startswith("$response.body#/"):
            return expression
        for step in expression.removeprefix("$response.body#/").split("/"):
            answer = answer[int(step)] if isinstance(answer, list) else answer[step]
        return answer


def test_a_tenants_life_follows_the_links(seed: fuzzing.Seed, record_property: Any) -> None:
    walk = Walk(seed.tokens[0])
    account = {"name": "Linked", "owners": ["owner@example.org"], "plan": "team"}
    walk.send("createAccount", parameters={}, body=account)
    answers = {target: walk.follow(source, target, body) for source, target, body in TENANT}

    tenant = answers["createTenant"].json()["tenantId"]
    entries = answers["getTenantManifest"].json()["_links"]["items"]
    assert [entry["deleted"] for entry in entries if entry["name"] == tenant] == [True]
    assert answers["listRulesHistory"].json()["changes"][0]["action"] == "delete"
    record_property("requests", walk.requests)


def test_a_users_life_follows_the_links(seed: fuzzing.Seed, record_property: Any) -> None:
    walk = Walk(seed.tokens[0])
    walk.send("replaceUser", parameters={"email": "linked@example.org"}, body={"displayName": "Ana"})
    for source, target, body in USER:
        walk.follow(source, target, body)
    record_property("requests", walk.requests)
