"""Structs: the JSON that is sent, and how the contract describes them."""

from __future__ import annotations

import datetime as dt
import json
from collections import Counter
from enum import StrEnum
from types import SimpleNamespace
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec
import pytest
from django.db.models import TextChoices
from django.utils.safestring import mark_safe
from drf_spectacular.plumbing import ComponentRegistry
from msgspec import UNSET, Meta, UnsetType
from rest_framework import serializers
from rest_framework.views import APIView

from tenantadmin.lib.core.rendering import dump_json
from tenantadmin.lib.core.structs import Count, Day, Email, JsonStruct, free_form, one_of, schema_ref, sent_as
from tenantadmin.lib.core.timestamps import Timestamp, format_timestamp
from tenantadmin.lib.http.schema import ContractSchema


class Size(TextChoices):
    SMALL = "small", "Small (S)"
    LARGE = "large", "Large (L)"


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


class PartDocument(JsonStruct):
    """A part."""

    part_id: int


class LongPart(PartDocument):
    length: float


class Whole(JsonStruct):
    first: LongPart
    from_: str
    links: PartDocument = msgspec.field(name="_links")
    maybe: str | None = None
    maybe_null: Annotated[PartDocument | UnsetType | None, Meta(description="Or not.")] = UNSET


class SentBody(serializers.Serializer[Any]):
    text = serializers.CharField()


def schemas_of(struct: Any) -> dict[str, Any]:
    """Return the components that a struct needs, by name."""
    auto_schema = ContractSchema()
    auto_schema.view, auto_schema.registry = APIView(request=None), ComponentRegistry()
    auto_schema.resolve_serializer(struct, "response")
    schemas: dict[str, Any] = auto_schema.registry.build({})["schemas"]
    return schemas


def schema_of(hint: Any) -> Any:
    """Return the schema of a required field of this type."""
    metaclass: Any = type(JsonStruct)
    struct = metaclass("Holder", (JsonStruct,), {"__annotations__": {"field": hint}})
    return schemas_of(struct)["Holder"]["properties"]["field"]


@pytest.mark.parametrize(
    ("hint", "schema"),
    [
        (str, {"type": "string"}),
        (int, {"type": "integer"}),
        (float, {"type": "number", "format": "double"}),
        (bool, {"type": "boolean"}),
        (Any, {}),
        (UUID, {"type": "string", "format": "uuid"}),
        (dt.date, {"type": "string", "format": "date"}),
        (Timestamp, {"type": "string", "format": "date-time"}),
        (Day, {"type": "string", "format": "date"}),
        (Email, {"type": "string", "format": "email"}),
        (Count, {"type": "integer", "minimum": 0}),
        (
            Annotated[float, Meta(ge=0, le=1)],
            {"type": "number", "format": "double", "maximum": 1, "minimum": 0},
        ),
        (
            Annotated[Count, Meta(description="How many.")],
            {"type": "integer", "minimum": 0, "description": "How many."},
        ),
        (list[str], {"type": "array", "items": {"type": "string"}}),
        (tuple[str, ...], {"type": "array", "items": {"type": "string"}}),
        (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
        (dict[str, Any], {"type": "object", "additionalProperties": {}}),
        (Annotated[PartDocument, free_form()], {"type": "object", "additionalProperties": {}}),
        (Literal["b", "a"], {"enum": ["b", "a"], "type": "string"}),
        (Colour, {"enum": ["red", "blue"], "type": "string"}),
        (Size, {"enum": ["small", "large"], "type": "string"}),
        (Annotated[str, one_of(Size.values)], {"enum": ["small", "large"], "type": "string"}),
        (str | None, {"type": "string", "nullable": True}),
        (
            Annotated[Count | None, Meta(description="Null: none.")],
            {"type": "integer", "minimum": 0, "nullable": True, "description": "Null: none."},
        ),
        (Literal["a"] | None, {"enum": ["a", None], "type": "string", "nullable": True}),
        (PartDocument, {"$ref": "#/components/schemas/Part"}),
        (list[PartDocument], {"type": "array", "items": {"$ref": "#/components/schemas/Part"}}),
        (PartDocument | None, {"allOf": [{"$ref": "#/components/schemas/Part"}], "nullable": True}),
        (
            Annotated[PartDocument, Meta(description="One.")],
            {"allOf": [{"$ref": "#/components/schemas/Part"}], "description": "One."},
        ),
        (Annotated[Any, schema_ref("Conditions")], {"$ref": "#/components/schemas/Conditions"}),
        (
            Annotated[dict[str, Any], sent_as(f"{__name__}.SentBody")],
            {"$ref": "#/components/schemas/Sent"},
        ),
    ],
)
def test_the_schema_of_a_field(hint: Any, schema: dict[str, Any]) -> None:
    found = schema_of(hint)
    assert found == schema
    assert list(found) == list(schema)


def test_a_struct_is_a_component_with_the_members_of_its_bases() -> None:
    part = {"$ref": "#/components/schemas/Part"}
    assert schemas_of(Whole) == {
        "Whole": {
            "type": "object",
            "properties": {
                "first": {"$ref": "#/components/schemas/LongPart"},
                "from": {"type": "string"},
                "_links": part,
                "maybe": {"type": "string"},
                "maybeNull": {"allOf": [part], "nullable": True, "description": "Or not."},
            },
            "required": ["_links", "first", "from"],
        },
        "Part": {
            "type": "object",
            "description": "A part.",
            "properties": {"partId": {"type": "integer"}},
            "required": ["partId"],
        },
        "LongPart": {
            "type": "object",
            # The nearest docstring, as of a serializer.
            "description": "A part.",
            "properties": {
                "partId": {"type": "integer"},
                "length": {"type": "number", "format": "double"},
            },
            "required": ["length", "partId"],
        },
    }


def test_a_component_can_have_a_name_of_its_own() -> None:
    class Inner(JsonStruct):
        component = "Outer"
        text: str

    assert list(schemas_of(Inner)) == ["Outer"]


def test_members_that_are_none_are_left_out_only_if_none_is_the_default() -> None:
    class Thing(JsonStruct):
        created_at: Timestamp
        nullable: str | None
        maybe: str | None = None
        maybe_null: str | UnsetType | None = UNSET

    at = format_timestamp(dt.datetime(2026, 3, 1, 1, 2, 3, 4_999, dt.UTC))
    assert json.loads(dump_json(Thing(created_at=at, nullable=None))) == {
        "createdAt": "2026-03-01T01:02:03.004Z",
        "nullable": None,
    }
    assert json.loads(dump_json([Thing(created_at=at, nullable=None, maybe="", maybe_null=None)])) == [
        {"createdAt": "2026-03-01T01:02:03.004Z", "nullable": None, "maybe": "", "maybeNull": None}
    ]


def test_a_struct_is_filled_from_attributes_of_the_same_names() -> None:
    class Thing(JsonStruct):
        id: int = msgspec.field(name="thingId")
        created_at: Timestamp
        ended_at: Timestamp | None = None
        size: Size

    at = dt.datetime(2026, 3, 1, 1, 2, 3, 4_999, dt.UTC)
    row = SimpleNamespace(id=1, created_at=at, ended_at=None, size=Size.SMALL, secret="x")
    made = Thing.of(row)
    assert dump_json(made) == b'{"thingId":1,"createdAt":"2026-03-01T01:02:03.004Z","size":"small"}'
    assert Thing.of(row, id=2, size=Size.LARGE) == msgspec.structs.replace(made, id=2, size=Size.LARGE)
    with pytest.raises(AttributeError, match="created_at"):
        Thing.of(SimpleNamespace(id=1))


def test_json_text() -> None:
    assert (
        dump_json({"a": [1, 1.5, -0.0, True, None, "é\n\u2028</"]})
        == '{"a":[1,1.5,-0.0,true,null,"é\\n\u2028</"]}'.encode()
    )
    assert dump_json({1: 2, UUID(int=1): 3, Size.SMALL: Colour.RED}) == (
        b'{"1":2,"00000000-0000-0000-0000-000000000001":3,"small":"red"}'
    )
    assert dump_json(Counter("aab")) == b'{"a":2,"b":1}'
    assert dump_json([dt.date(2026, 3, 1), UUID(int=2), (1,), 10**30, mark_safe("<b>")]) == (
        b'["2026-03-01","00000000-0000-0000-0000-000000000002",[1],1000000000000000000000000000000,"<b>"]'
    )
    assert json.loads(dump_json([1e300, 1e-300, 1e16, 0.1, 123456789.123])) == [
        1e300,
        1e-300,
        1e16,
        0.1,
        123456789.123,
    ]


def test_a_value_that_is_not_json_is_an_error() -> None:
    with pytest.raises(TypeError, match="JSON has no type for object"):
        dump_json({"a": object()})
    with pytest.raises(UnicodeEncodeError):
        dump_json("\ud800")
