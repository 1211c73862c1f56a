"""Shapes that several answers share, for the contract."""
# ruff: noqa: N815  (the members' names are those of the JSON)

from __future__ import annotations

from typing import Any, Final

from drf_spectacular.utils import OpenApiResponse
from rest_framework import serializers

from tenantadmin.http.schema import refusal


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


class Deletion(Success):
    """A deleted tenant; how many stored documents went."""

    deletedFiles = serializers.IntegerField(min_value=0)


STALE: Final = refusal(409, "The document changed in the meantime: read it again and retry.")
NOT_MODIFIED: Final = OpenApiResponse(description="The caller's copy is the present one.")
