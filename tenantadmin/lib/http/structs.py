"""Description of a `JsonStruct` by drf-spectacular. `tenantadmin.lib.http.schema` imports it."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Final, Union, get_args, get_origin

import msgspec
from django.utils.module_loading import import_string
from drf_spectacular.extensions import OpenApiSerializerExtension
from drf_spectacular.plumbing import (
    append_meta,
    build_array_type,
    build_object_type,
    resolve_type_hint,
)
from msgspec import Meta, UnsetType

from tenantadmin.lib.core.structs import JsonStruct
from tenantadmin.lib.core.timestamps import Timestamp

if TYPE_CHECKING:
    from drf_spectacular.openapi import AutoSchema
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
