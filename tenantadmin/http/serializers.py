"""Serializers that ignore nothing silently, and the shapes that several answers share."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any, ClassVar

from rest_framework import serializers

if TYPE_CHECKING:
    from collections.abc import Iterable


def unknown_name_message(name: str, known: Iterable[str], *, kind: str = "property") -> str:
    """Return a sentence that names the unknown ``name`` and the nearest known one."""
    nearest = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f"Unknown {kind} '{name[:80]}'." + (f" Did you mean '{nearest[0]}'?" if nearest else "")


class StrictSerializer(serializers.Serializer[Any]):
    """A serializer that refuses members it does not declare, naming the nearest one it does."""

    #: Whether a request may leave such a body out.
    may_be_absent: ClassVar[bool] = False

    default_error_messages: ClassVar = {"invalid": "Send a JSON object."}

    def to_internal_value(self, data: Any) -> Any:
        unknown: dict[str, list[Any]] = {}
        if isinstance(data, dict):
            known = list(self.fields)
            unknown = {
                name: [serializers.ErrorDetail(unknown_name_message(name, known), code="unknown-property")]
                for name in data
                if name not in self.fields
            }
        try:
            value = super().to_internal_value(data)
        except serializers.ValidationError as error:
            if isinstance(error.detail, dict):
                raise serializers.ValidationError({**error.detail, **unknown}) from error
            raise
        if unknown:
            raise serializers.ValidationError(unknown)
        return value


class Link(serializers.Serializer[Any]):
    href = serializers.CharField()


class HalItem(serializers.Serializer[Any]):
    """An entry of a list."""

    name = serializers.CharField()
    href = serializers.CharField()


class HalLinks(serializers.Serializer[Any]):
    self = Link()
    parent = Link()
    items = HalItem(many=True)


class ItemList(serializers.Serializer[Any]):
    """A list with the way to each of its entries."""

    _links = HalLinks()


class Success(serializers.Serializer[Any]):
    success = serializers.BooleanField()
    message = serializers.CharField()
