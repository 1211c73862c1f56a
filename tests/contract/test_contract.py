"""The published contract is the code's own, valid, and complete. Contract: Versioning."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from openapi_spec_validator import OpenAPIV30SpecValidator

from accounts.access.scopes import PAT_ONLY, Level, Scope
from accounts.routes import declared_routes
from logs.columns import CACHE_STATUSES
from rules.lint import FINDING_KINDS
from scripts.contract import describe_contract
from tenantadmin.lib.core.errors import error_codes
from tenantadmin.lib.http.published_contract import make_contract, published_contract
from tests.operations import routes

if TYPE_CHECKING:
    from tests.conftest import ApiClient


@pytest.fixture(scope="module")
def contract() -> dict[str, Any]:
    document: dict[str, Any] = json.loads(published_contract()[0])
    return document


def operations(contract: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, item in contract["paths"].items():
        for method, operation in item.items():
            yield path, method, operation


@pytest.fixture(scope="module")
def made() -> bytes:
    return make_contract()


def test_the_published_contract_is_made_from_the_code(made: bytes, contract: dict[str, Any]) -> None:
    assert json.loads(made) == contract, "run 'make contract'"


def test_the_committed_text_is_made_from_the_code(made: bytes) -> None:
    committed = Path(__file__).with_name("contract.txt").read_text()
    assert [*describe_contract(json.loads(made))] == committed.splitlines(), "run 'make contract'"


def test_it_is_made_at_the_first_request_without_a_file(
    made: bytes, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tenantadmin.lib.http.published_contract.CONTRACT_FILE", tmp_path / "openapi.json")
    published_contract.cache_clear()
    try:
        assert published_contract()[0] == made
    finally:
        published_contract.cache_clear()


def test_it_is_valid_openapi_3_0_3_of_version_2_0_0(contract: dict[str, Any]) -> None:
    OpenAPIV30SpecValidator(contract).validate()
    assert (contract["openapi"], contract["info"]["version"]) == ("3.0.3", "2.0.0")


def test_it_is_served_at_the_root_to_anyone(anonymous: ApiClient, contract: dict[str, Any]) -> None:
    answer = anonymous.get("/", Authorization="Bearer nonsense")
    assert answer.status_code == 200
    assert answer["Content-Type"] == "application/json"
    assert answer.json() == contract
    assert anonymous.get("/", **{"If-None-Match": answer["ETag"]}).status_code == 304


def test_it_is_compressed_for_clients_that_accept_gzip(
    anonymous: ApiClient, contract: dict[str, Any]
) -> None:
    plain = anonymous.get("/")
    answer = anonymous.get("/", **{"Accept-Encoding": "br, gzip;q=0.5"})
    assert (answer["Content-Encoding"], answer["Vary"]) == ("gzip", "Accept-Encoding, Accept, origin")
    assert json.loads(gzip.decompress(answer.content)) == contract
    assert answer["ETag"] == f"W/{plain['ETag']}"
    again = anonymous.get("/", **{"Accept-Encoding": "gzip", "If-None-Match": answer["ETag"]})
    assert (again.status_code, again.content) == (304, b"")


def test_its_human_page_loads_nothing_from_elsewhere(anonymous: ApiClient) -> None:
    page = anonymous.get("/docs")
    assert page.status_code == 200
    text = page.content.decode()
    assert "swagger-ui-bundle.js" in text
    assert 'src="http' not in text
    assert 'href="http' not in text
    assert "grant_type=pat_exchange" in text


def test_every_operation_has_an_id_and_its_answers(contract: dict[str, Any]) -> None:
    seen: set[str] = set()
    declared = declared_routes()
    for path, method, operation in operations(contract):
        place = f"{method.upper()} {path}"
        assert operation["operationId"] not in seen, place
        seen.add(operation["operationId"])
        assert operation.get("tags"), place
        assert operation.get("summary"), place
        statuses = set(operation["responses"])
        is_lean = operation["operationId"] == "getTenant"  # as the specification has it
        assert {"400", "503"} <= statuses, place
        assert ({"404", "500"} & statuses == set()) if is_lean else ("500" in statuses), place
        assert any(status.startswith(("2", "3")) for status in statuses), place
        if declared[operation["operationId"]].level is not Level.PUBLIC:
            assert {"401", "403"} <= statuses, place
            assert operation["security"] == [{"bearerAuth": []}, {"oauth2": []}], place
        else:
            assert operation["security"] == [], place
        if method in {"post", "put", "patch"}:
            assert {"408", "413"} <= statuses, place


def test_tokens_are_given_or_come_from_signing_in(contract: dict[str, Any]) -> None:
    schemes = contract["components"]["securitySchemes"]
    assert schemes["bearerAuth"] == {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"}
    assert set(schemes) == {"bearerAuth", "oauth2"}
    [(kind, flow)] = schemes["oauth2"]["flows"].items()
    assert (kind, flow["authorizationUrl"], flow["refreshUrl"]) == ("implicit", "/auth/login", "/oauth/token")
    assert set(flow["scopes"]) == set(Scope) - PAT_ONLY
    assert "get" in contract["paths"]["/auth/login"]
    assert "post" in contract["paths"]["/oauth/token"]


def test_the_operations_of_an_address_come_in_one_order(contract: dict[str, Any]) -> None:
    methods = ["get", "post", "put", "patch", "delete"]
    for path, item in contract["paths"].items():
        assert list(item) == [method for method in methods if method in item], path


def test_the_contract_the_routes_and_the_permissions_name_the_same_operations(
    contract: dict[str, Any],
) -> None:
    published = {operation["operationId"]: method for _, method, operation in operations(contract)}
    assert {route.operation: route.method.lower() for route in routes()} == published
    assert published.keys() == set(declared_routes())


def test_its_schemas_and_tags_have_plain_names(contract: dict[str, Any]) -> None:
    for name, schema in contract["components"]["schemas"].items():
        assert not name.endswith(("Body", "BodyRequest", "Document", "RequestRequest", "Serializer")), name
        assert "serializer" not in schema.get("description", "").lower(), name
    tags = [tag["name"] for tag in contract["tags"]]
    assert {tag for _, _, operation in operations(contract) for tag in operation["tags"]} == set(tags)


def test_its_enumerations_have_names(contract: dict[str, Any]) -> None:
    schemas = contract["components"]["schemas"]
    inline = [
        f"{name}.{member}"
        for name, schema in schemas.items()
        for member, value in schema.get("properties", {}).items()
        if "enum" in value or "enum" in value.get("items", {})
    ]
    assert inline == []
    assert schemas["ErrorCode"]["enum"] == error_codes()
    assert schemas["FindingCode"]["enum"] == sorted(FINDING_KINDS)
    assert schemas["CacheStatus"]["enum"] == list(CACHE_STATUSES)


@pytest.mark.parametrize("schema", ["QueryRecord", "LoggedRequest"])
def test_a_status_of_the_log_may_be_another_text(contract: dict[str, Any], schema: str) -> None:
    """The service does not change what the Gateway wrote."""
    status = contract["components"]["schemas"][schema]["properties"]["cacheStatus"]
    assert status["anyOf"] == [
        {"$ref": "#/components/schemas/CacheStatus"},
        {"type": "string", "nullable": True},
    ]


def test_null_is_declared_beside_a_type(contract: dict[str, Any]) -> None:
    """OpenAPI 3.0.3 does not define it otherwise, and generators of clients take it in different ways."""

    def places(value: Any, place: str) -> Iterator[str]:
        if isinstance(value, dict):
            if value.get("nullable") is True and "type" not in value:
                yield place
            for name, member in value.items():
                yield from places(member, f"{place}/{name}")
        elif isinstance(value, list):
            for index, member in enumerate(value):
                yield from places(member, f"{place}/{index}")

    assert list(places(contract, "")) == []


def test_every_body_is_declared_as_json_alone(contract: dict[str, Any]) -> None:
    for path, method, operation in operations(contract):
        if "requestBody" in operation:
            assert list(operation["requestBody"]["content"]) == ["application/json"], f"{method} {path}"


def test_equal_read_and_write_types_are_one_type(contract: dict[str, Any]) -> None:
    schemas = contract["components"]["schemas"]
    assert not {"MembershipRequest", "RolesRequest", "WarehouseRequest", "EndpointRequest"} & schemas.keys()
    replace = contract["paths"]["/config/tenants/{tenant}/rules"]["put"]
    check = contract["paths"]["/config/rules/validate"]["post"]
    accepted = [
        [
            option["$ref"].rpartition("/")[2]
            for option in each["requestBody"]["content"]["application/json"]["schema"]["anyOf"]
        ]
        for each in (replace, check)
    ]
    assert accepted == [
        ["TenantRulesRequest", "TenantRules"],
        ["TenantRulesRequest", "TenantRules", "CheckedRulesRequest"],
    ]


def test_no_name_is_that_of_a_constructor(contract: dict[str, Any]) -> None:
    """In Go, `NewPat` makes a `Pat`."""
    names = contract["components"]["schemas"].keys()
    assert [name for name in names if f"New{name}" in names] == []


def test_no_two_values_of_enumerations_have_the_same_name(contract: dict[str, Any]) -> None:
    """In Go, they are constants of one package."""
    schemas = contract["components"]["schemas"]
    enumerations = [schema for schema in schemas.values() if "enum" in schema]
    assert schemas["MembershipRole"]["x-enum-varnames"] == [
        f"MEMBERSHIP_ROLE_{value.upper()}" for value in schemas["MembershipRole"]["enum"]
    ]
    names = [name for schema in enumerations for name in schema["x-enum-varnames"]]
    assert len(set(names)) == len(names) == sum(len(schema["enum"]) for schema in enumerations)
    assert [name for name in names if not re.fullmatch("[A-Z][A-Z0-9]*(_[A-Z0-9]+)*", name)] == []


def test_each_schema_of_an_enumeration_has_a_type(contract: dict[str, Any]) -> None:
    """Generators write nothing for `{"enum": [null]}`."""

    def find(value: Any) -> Iterator[Any]:
        if isinstance(value, dict):
            if isinstance(value.get("enum"), list) and "type" not in value:
                yield value
            value = list(value.values())
        for member in value if isinstance(value, list) else ():
            yield from find(member)

    assert list(find(contract["components"]["schemas"])) == []


def test_clients_pass_unknown_members_of_rules_on_to_the_service(contract: dict[str, Any]) -> None:
    """A client that drops a misspelt condition writes a rule that matches every request."""
    schemas = contract["components"]["schemas"]
    names = ["Conditions", "Rule", "RuleRequest", "TenantRules", "TenantRulesRequest", "CheckedRulesRequest"]
    for name in [*names, *(name for name in schemas if name.endswith("Operators"))]:
        assert schemas[name]["additionalProperties"] == {"not": {}}, name


@pytest.mark.parametrize(
    ("answer", "request_body"),
    [
        ("Account", "AccountRequest"),
        ("TenantConfig", "TenantConfigRequest"),
        ("TenantRules", "TenantRulesRequest"),
        ("CacheMetadata", "CacheMetadataRequest"),
        ("InvalidationMarker", "MarkerUpdateRequest"),
        ("User", "UserRequest"),
    ],
)
def test_a_document_may_be_sent_back_as_it_was_read(
    contract: dict[str, Any], answer: str, request_body: str
) -> None:
    schemas = contract["components"]["schemas"]
    assert schemas[request_body]["additionalProperties"] in (False, {"not": {}})
    assert schemas[answer]["properties"].keys() <= schemas[request_body]["properties"].keys()
