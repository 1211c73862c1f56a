"""What the fuzzing tests hold to be forbidden, by example. Contract: Errors."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import urlencode

import pytest

from tests.contract import fuzzing, refusals

OPERATIONS: Final = {
    operation.definition.raw["operationId"]: operation
    for operation in fuzzing.operations(fuzzing.load_contract())
}
TENANT: Final = {"tenant": "0b7c6a0e-3c39-4d0e-8f1e-1f2a3b4c5d6e"}
NAMED: Final = {"markerId": "m", "targetRuleId": "orders"}


@pytest.mark.parametrize(
    ("name", "path", "query", "body", "found"),
    [
        ("listChanges", {}, {}, None, []),
        ("listChanges", {}, {"limit": "200", "userId": "a@b.example"}, None, []),
        ("listChanges", {}, {"limit": "201"}, None, ["query: limit"]),
        ("listChanges", {}, {"limit": "abc"}, None, ["query: limit"]),
        ("listChanges", {}, {"limits": "1"}, None, ["query: limits is not declared"]),
        ("getTenantManifest", {}, {"includeDeleted": "true"}, None, []),
        ("getTenantManifest", {}, {"includeDeleted": "1"}, None, ["query: includeDeleted"]),
        ("diffRules", TENANT, {"from": "0", "to": "1"}, None, []),
        ("diffRules", TENANT, {"from": "0"}, None, ["query: to is absent"]),
        ("getTenant", {"tenant": "0b7c"}, {}, None, ["path: tenant"]),
        ("getRulesRevision", {**TENANT, "seq": "-1"}, {}, None, ["path: seq"]),
        ("getUser", {"email": "owner%40example.org"}, {}, None, []),
        ("mergeRoles", {"email": "a@b.example"}, {}, None, ["body: absent"]),
        ("verifyDomain", {"account": TENANT["tenant"], "domain": "b.example"}, {}, None, []),
        ("createMarker", TENANT, {}, NAMED, []),
        ("createMarker", TENANT, {}, None, ["body: absent"]),
        ("createMarker", TENANT, {}, {**NAMED, "ttlSeconds": 1}, ["body"]),
        ("createMarker", TENANT, {}, {"markerId": "m"}, ["body"]),
        ("replaceTenantRules", TENANT, {}, {"rules": [], "seq": 1.0}, []),
        ("replaceTenantRules", TENANT, {}, {"rules": [], "seq": 1.5}, ["body"]),
    ],
)
def test_exactly_the_forbidden_parts_are_found(
    name: str, path: dict[str, str], query: dict[str, str], body: Any, found: list[str]
) -> None:
    sent = {} if body is None else {"body": body, "media_type": "application/json"}
    case = OPERATIONS[name].Case(path_parameters=path, query=query, **sent)
    places = list(refusals.find_forbidden(case, f"http://localhost/?{urlencode(query)}"))
    assert len(places) == len(found), places
    assert all(place.startswith(start) for place, start in zip(places, found, strict=True)), places
