"""Description of operations and of `JsonStruct` by drf-spectacular, and additions to the contract as a whole.

`tenantadmin.lib.http.schema` changes the contract as a whole.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Final, Union, get_args, get_origin

import msgspec
from django.utils.module_loading import import_string
from drf_spectacular.extensions import OpenApiSerializerExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.plumbing import (
    append_meta,
    build_array_type,
    build_object_type,
    resolve_type_hint,
)
from drf_spectacular.utils import OpenApiResponse
from msgspec import Meta, UnsetType

from tenantadmin.lib.core.errors import ErrorBody, error_codes
from tenantadmin.lib.core.structs import JsonStruct
from tenantadmin.lib.core.timestamps import Timestamp
from tenantadmin.lib.http.viewsets import ApiViewSet

if TYPE_CHECKING:
    from drf_spectacular.utils import Direction

#: In the order in which drf-spectacular writes them.
_LIMITS: Final = {"le": "maximum", "ge": "minimum"}


def component_name(described: type[object], direction: str) -> str:
    """Name a component after the thing: `UserBody` and `UserDocument` describe a `User`."""
    name = described.__name__.removesuffix("Body").removesuffix("Document")
    # drf-spectacular adds "Request" to the name of what is sent.
    return name.removesuffix("Request") if direction == "request" else name


class JsonStructExtension(OpenApiSerializerExtension):  # type: ignore[no-untyped-call]
    """Describes a class of `JsonStruct` where drf-spectacular expects a serializer."""

    target_class = JsonStruct
    match_subclasses = True

    def get_name(self, auto_schema: AutoSchema, direction: Direction) -> str:  # noqa: ARG002
        return self.target.component or component_name(self.target, direction)

    def map_serializer(self, auto_schema: AutoSchema, direction: Direction) -> dict[str, Any]:
        describer = _Describer(auto_schema, direction)
        fields = msgspec.structs.fields(self.target)
        return build_object_type(
            # A member whose default is None is left out instead of being null.
            properties={
                field.encode_name: describer.describe(field.type, is_nullable=field.default is not None)
                for field in fields
            },
            required=[field.encode_name for field in fields if field.required],
            description=_description(self.target),
        )


class _Describer:
    """Returns the schemas of types. The structs and serializers in them become components."""

    def __init__(self, auto_schema: AutoSchema, direction: Direction) -> None:
        self._auto_schema = auto_schema
        self._direction = direction

    def describe(self, hint: Any, *, is_nullable: bool = True) -> dict[str, Any]:
        """Return the schema of a type. With ``is_nullable=False``, None is not a value of it."""
        origin, parts = get_origin(hint), get_args(hint)
        if origin is Annotated:
            return self._describe_annotated(parts[0], parts[1:], is_nullable=is_nullable)
        if origin in {Union, UnionType}:
            return self._describe_union(parts, is_nullable=is_nullable)
        if inspect.isclass(origin) and issubclass(origin, Mapping):
            return {"type": "object", "additionalProperties": self.describe(parts[1])}
        if inspect.isclass(origin) and issubclass(origin, Sequence):
            return dict(build_array_type(self.describe(parts[0])))
        if inspect.isclass(hint) and issubclass(hint, JsonStruct):
            return self._refer_to(hint)
        if hint is Timestamp:
            return {"type": "string", "format": "date-time"}
        if hint is Any:
            return {}
        schema: dict[str, Any] = resolve_type_hint(hint)  # type: ignore[no-untyped-call]
        # The hash includes the labels of Django's choices. Without it, drf-spectacular compares the values.
        schema.pop("x-spec-enum-id", None)
        return schema

    def _describe_annotated(self, hint: Any, notes: Sequence[Any], *, is_nullable: bool) -> dict[str, Any]:
        metas = [note for note in notes if isinstance(note, Meta)]
        extra = {name: value for meta in metas for name, value in (meta.extra_json_schema or {}).items()}
        shapes = [meta.extra["shape"] for meta in metas if meta.extra]
        if shapes:
            schema = self._refer_to(import_string(shapes[0]))
        elif "$ref" in extra or "type" in extra:
            schema, extra = extra, {}
        else:
            schema = self.describe(hint, is_nullable=is_nullable)
        limits = {
            word: getattr(meta, name)
            for name, word in _LIMITS.items()
            for meta in metas
            if getattr(meta, name) is not None
        }
        description = next((meta.description for meta in metas if meta.description), None)
        texts = {} if description is None else {"description": description}
        return append_meta({**schema, **limits}, {**texts, **extra})

    def _describe_union(self, parts: Sequence[Any], *, is_nullable: bool) -> dict[str, Any]:
        schemas: list[dict[str, Any]] = [
            self.describe(part) for part in parts if part not in {NoneType, UnsetType}
        ]
        schema = schemas[0] if len(schemas) == 1 else {"oneOf": schemas}
        if NoneType not in parts or not is_nullable:
            return schema
        if "enum" in schema:
            schema = {**schema, "enum": [*schema["enum"], None]}
        return append_meta(schema, {"nullable": True})

    def _refer_to(self, target: Any) -> dict[str, Any]:
        return dict(self._auto_schema.resolve_serializer(target, self._direction).ref)


def _description(struct: type[JsonStruct]) -> str:
    """Return the docstring of a struct or of the nearest struct that it inherits from."""
    structs = struct.__mro__[: struct.__mro__.index(JsonStruct)]
    return next((inspect.cleandoc(cls.__doc__) for cls in structs if cls.__doc__), "")


ERROR_REF: Final = {"$ref": "#/components/schemas/Error"}

DESCRIPTIONS: Final = {
    "400": "Invalid or malformed body or parameter.",
    "401": "Missing or invalid credentials.",
    "403": "The caller lacks permission.",
    "404": "There is no such resource.",
    "405": "The method is not allowed here.",
    "406": "No type in `Accept` is offered.",
    "408": "The body did not arrive in time.",
    "409": "The stored state does not allow it, or changed in the meantime.",
    "413": "The body is over 1 MiB.",
    "429": "Too many requests; see `Retry-After`.",
    "500": "A fault of the service.",
    "502": "A provider failed.",
    "503": "Not available yet, or not configured; see `Retry-After`, if it is there.",
}

#: Errors that an operation can return, and that the specification does not declare.
_UNDECLARED: Final = {("GET", "/config/tenants/{tenant}"): frozenset({"404", "500"})}


class ContractSchema(AutoSchema):
    """Take names and tags from the viewset. Add the error statuses that every operation can return."""

    def get_operation_id(self) -> str:
        if isinstance(self.view, ApiViewSet):
            return self.view.operation_id(self.view.action)
        return str(super().get_operation_id())

    def get_summary(self) -> str | None:
        if isinstance(self.view, ApiViewSet):
            return self.view.summary(self.view.action)
        summary: str | None = super().get_summary()
        return summary

    def get_tags(self) -> list[str]:
        if isinstance(self.view, ApiViewSet):
            return [self.view.tag]
        return list(super().get_tags())

    def get_description(self) -> str:  # type: ignore[override] # as drf-spectacular's own
        # Use only the docstring of the action, not the docstring of a base class.
        action = getattr(self.view, getattr(self.view, "action", ""), None)
        return inspect.cleandoc(getattr(action, "__doc__", None) or "")

    def get_serializer_name(self, serializer: Any, direction: str) -> str:
        return component_name(type(serializer), direction)

    def map_parsers(self) -> list[str]:
        """Declare only JSON. Client generators fail on two types of one body; the description names forms."""
        return ["application/json"]

    def get_auth(self) -> list[dict[str, Any]]:
        if isinstance(self.view, ApiViewSet) and self.view.is_public(self.view.action):
            return []
        auth: list[dict[str, Any]] = super().get_auth()
        return auth

    def get_operation(self, *args: Any, **kwargs: Any) -> dict[str, Any] | None:
        operation: dict[str, Any] | None = super().get_operation(*args, **kwargs)
        if operation is not None:
            if "requestBody" in operation:
                # By default, drf-spectacular requires a body only if it has a required member.
                body = self.get_request_serializer()
                operation["requestBody"]["required"] = not getattr(body, "may_be_absent", False)
            responses = operation.setdefault("responses", {})
            undeclared = _UNDECLARED.get((self.method, self.path), frozenset())
            for status in set(self._common_errors(operation)) - undeclared:
                responses.setdefault(status, self._error_response(status))
            operation["responses"] = dict(sorted(responses.items()))
        return operation

    def _error_response(self, status: str) -> dict[str, Any]:
        """Return the response object of an error status that every operation can return."""
        schema = self.resolve_serializer(ErrorBody, "response").ref  # type: ignore[arg-type]  # a struct
        return {
            "description": DESCRIPTIONS[status],
            "content": {"application/json": {"schema": schema}},
        }

    def _common_errors(self, operation: Mapping[str, Any]) -> list[str]:
        statuses = ["400", "429", "500", "503"]
        if operation.get("security"):
            statuses += ["401", "403"]
        if "{" in self.path:
            statuses.append("404")
        if self.method in {"POST", "PUT", "PATCH"}:
            statuses += ["408", "413"]
        return statuses


def refusal(status: int, description: str = "") -> OpenApiResponse:
    """Return the response that a view declares for an error status: the Error body and a description."""
    return OpenApiResponse(response=ErrorBody, description=description or DESCRIPTIONS[str(status)])


STALE: Final = refusal(409, "The document changed in the meantime: read it again and retry.")

NOT_MODIFIED: Final = OpenApiResponse(description="The caller's copy is the present one.")

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
