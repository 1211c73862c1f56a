"""JSON objects of answers, declared once: what a service returns, what is sent, and what the contract says.

``tenantadmin.lib.http.schema`` describes them in the contract. Decision 20 says why.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Any, ClassVar, Self, TypeAlias, dataclass_transform

import msgspec
from msgspec import Meta

from tenantadmin.lib.core.timestamps import format_timestamp


class _KeywordsOnly(msgspec.StructMeta):
    """Make fields keyword-only, which msgspec does not inherit: then any of them may be optional."""

    def __new__(mcls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **config: Any) -> Any:
        return super().__new__(mcls, name, bases, namespace, **{"kw_only": True, **config})


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field,))
class JsonStruct(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", metaclass=_KeywordsOnly):
    """The base of JSON objects. ``created_at`` is the member ``createdAt``, and ``from_`` is ``from``.

    A member that may be absent is declared ``T | None = None`` and left out if it is None. Without the
    default, it is written as null. The docstring of the class is the description in the contract.
    """

    #: The name in the contract, if it is not the name of the class without ``Document``.
    component: ClassVar[str] = ""

    @classmethod
    def of(cls, row: object, **members: Any) -> Self:
        """Return a struct with the attributes of ``row`` that have the names of its fields.

        Times become text. ``members`` are the fields that the row lacks, or whose value differs.

        Raises:
            AttributeError: a field is neither an attribute of the row nor in ``members``.
        """
        for name in cls.__struct_fields__:
            if name not in members:
                value = getattr(row, name)
                members[name] = format_timestamp(value) if type(value) is datetime else value
        return cls(**members)


class Success(JsonStruct):
    """Whether it was done, and a sentence about it."""

    success: bool
    message: str


Count: TypeAlias = Annotated[int, Meta(ge=0)]
Email: TypeAlias = Annotated[str, Meta(extra_json_schema={"type": "string", "format": "email"})]
#: A day as text: ``2026-03-01``. Where the service has a date, the field is a ``datetime.date``.
Day: TypeAlias = Annotated[str, Meta(extra_json_schema={"type": "string", "format": "date"})]


def one_of(values: Iterable[str]) -> Meta:
    """Describe a text as one of ``values``, for columns whose choices are a Django enumeration."""
    return Meta(extra_json_schema={"enum": list(values), "type": "string"})


def free_form() -> Meta:
    """Describe a field as an object of any members."""
    return Meta(extra_json_schema={"type": "object", "additionalProperties": {}})


def example(value: Any) -> Meta:
    """Show ``value`` in the contract."""
    return Meta(extra_json_schema={"example": value})


def schema_ref(component: str) -> Meta:
    """Describe a field by a component of the contract that is written by hand."""
    return Meta(extra_json_schema={"$ref": f"#/components/schemas/{component}"})


def sent_as(shape: str) -> Meta:
    """Describe a dict that is answered as it is stored, by the dotted path of its shape.

    The shape is the serializer of the request that sent the dict, or the struct that made it.
    """
    return Meta(extra={"shape": shape})
