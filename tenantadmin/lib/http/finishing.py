"""Additions to the generated contract as a whole, and changes for generators of clients."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from tenantadmin.lib.core.errors import error_codes
from tenantadmin.lib.http.schema import DESCRIPTIONS
from tenantadmin.lib.http.viewsets import ApiViewSet

if TYPE_CHECKING:
    from collections.abc import Iterator

_PREFIX: Final = "#/components/schemas/"
_REQUEST: Final = "Request"
_HEADERS: Final = {
    "X-Request-Id": {
        "description": "The id under which the request was answered and logged.",
        "required": True,
        "schema": {"type": "string", "pattern": "^[A-Za-z0-9._-]{1,128}$"},
    },
    "Retry-After": {
        "description": "Seconds to wait before the next request.",
        "schema": {"type": "integer", "minimum": 1},
    },
}
#: The schema of null. OpenAPI 3.0.3 has none, and generators need a type.
_NULL: Final = {"type": "string", "nullable": True, "enum": [None]}
#: Statuses whose responses may say when to try again.
_RETRIED: Final = frozenset({"429", "503"})


def finish_contract(result: dict[str, Any], generator: Any, **_: Any) -> dict[str, Any]:  # noqa: ARG001
    """Add errors, headers, descriptions and security to all operations (a hook of drf-spectacular)."""
    components = result.setdefault("components", {})
    schemas = components["schemas"]
    schemas["ErrorCode"] = {
        "type": "string",
        "enum": error_codes(),
        "description": "What went wrong, for programs.",
    }
    for name, schema in schemas.items():
        if name.endswith(_REQUEST) and "properties" in schema:
            schema.setdefault("additionalProperties", False)
    for schema in _schemas(result):
        _write_nullable(schema)
    _merge_equal_requests(result)
    _name_enums_of_parameters(result)
    _name_values(schemas)
    components["schemas"] = dict(sorted(schemas.items()))
    components["headers"] = _HEADERS
    for path, operations in result["paths"].items():
        # drf-spectacular reads the methods of a viewset from a set, so their order changes from run to run.
        path_item = result["paths"][path] = {
            method: operations[method] for method in ApiViewSet.http_method_names if method in operations
        }
        for operation in path_item.values():
            # An empty list: the operation needs no credentials.
            operation.setdefault("security", [])
            for status, response in operation["responses"].items():
                response["description"] = response.get("description") or DESCRIPTIONS.get(status, "Done.")
                headers = response.setdefault("headers", {})
                headers["X-Request-Id"] = {"$ref": "#/components/headers/X-Request-Id"}
                if status in _RETRIED:
                    headers["Retry-After"] = {"$ref": "#/components/headers/Retry-After"}
    result["servers"] = [{"url": "/"}]
    return result


def _schemas(value: Any) -> Iterator[dict[str, Any]]:
    """Yield every object in a document, inner ones first."""
    if isinstance(value, dict):
        for member in value.values():
            yield from _schemas(member)
        yield value
    elif isinstance(value, list):
        for member in value:
            yield from _schemas(member)


def _write_nullable(schema: dict[str, Any]) -> None:
    """Write "or null" without ``nullable`` beside no ``type``, which OpenAPI 3.0.3 does not define.

    A schema without a type allows null anyway. A reference becomes one of two schemas, the other is null.
    """
    if schema.get("nullable") is not True or "type" in schema:
        return
    del schema["nullable"]
    reference = schema.pop("allOf", None)
    if reference is not None:
        schema["oneOf"] = [*reference, _NULL]


def _merge_equal_requests(result: dict[str, Any]) -> None:
    """Use one schema for request and response where both are the same.

    A client can then send back what it has read. Lengths are declared only for requests.
    """
    schemas = result["components"]["schemas"]
    while True:
        merged = {
            name: name.removesuffix(_REQUEST)
            for name, schema in schemas.items()
            if name.endswith(_REQUEST) and _is_same(schema, schemas.get(name.removesuffix(_REQUEST)))
        }
        if not merged:
            return
        for name, shorter in merged.items():
            schemas[shorter] = schemas.pop(name)
        for schema in _schemas(result):
            reference = schema.get("$ref")
            if isinstance(reference, str) and reference.removeprefix(_PREFIX) in merged:
                schema["$ref"] = _PREFIX + merged[reference.removeprefix(_PREFIX)]


def _is_same(request: dict[str, Any], answer: dict[str, Any] | None) -> bool:
    return answer is not None and _comparable(request) == _comparable(answer)


def _comparable(schema: dict[str, Any]) -> Any:
    copy = json.loads(json.dumps(schema))
    copy.pop("additionalProperties", None)
    for part in _schemas(copy):
        part.pop("minLength", None)
    return copy


def _name_enums_of_parameters(result: dict[str, Any]) -> None:
    """Refer to the named enumerations from parameters, too. drf-spectacular does so only in schemas."""
    names = {
        tuple(schema["enum"]): name
        for name, schema in result["components"]["schemas"].items()
        if "enum" in schema
    }
    for item in result["paths"].values():
        for operation in item.values():
            for parameter in operation.get("parameters", ()):
                schema = parameter["schema"]
                name = names.get(tuple(schema.get("enum", ())))
                if name is not None:
                    reference = {"$ref": _PREFIX + name}
                    default = schema.get("default")
                    parameter["schema"] = (
                        reference if default is None else {"allOf": [reference], "default": default}
                    )


def _name_values(schemas: dict[str, Any]) -> None:
    """Name the values of enumerations for generators. In Go, all of them are constants of one package."""
    for name, schema in schemas.items():
        if "enum" in schema:
            schema["x-enum-varnames"] = [f"{_constant(name)}_{_constant(value)}" for value in schema["enum"]]


def _constant(name: str) -> str:
    """Return ``MEMBERSHIP_ROLE`` for ``MembershipRole``."""
    return re.sub(r"\W", "_", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)).upper()
