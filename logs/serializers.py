"""Serializers of the log tree and of SQL queries. The contract is made from them too.

Contract: Raw logs, SQL over the log.
"""
# ruff: noqa: N815  (fields have the names of the JSON members)

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from tenantadmin.http.serializers import HalLinks, Link, StrictCharField, StrictSerializer


class LogListing(serializers.Serializer[Any]):
    """The immediate children of a level that have data."""

    tenantId = serializers.UUIDField()
    _links = HalLinks()


class StatementField(StrictCharField):
    """A field that accepts any text. The guard checks it later, so that the audit has it as sent."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.validators = []


class QueryBody(StrictSerializer):
    """A query of the log."""

    sql = StatementField(
        trim_whitespace=False, allow_blank=True, help_text="One SELECT (or WITH … SELECT) over `proxy_logs`."
    )


class QueryColumn(serializers.Serializer[Any]):
    name = serializers.CharField()
    type = serializers.CharField(help_text="The engine's type, such as VARCHAR or BIGINT.")


class QueryAnswer(serializers.Serializer[Any]):
    """The rows of a query, as objects by column name."""

    tenantId = serializers.UUIDField()
    columns = QueryColumn(many=True)
    rows = serializers.ListField(child=serializers.DictField())
    rowCount = serializers.IntegerField(min_value=0)
    truncated = serializers.BooleanField(help_text="True when the cap cut the result.")


class SchemaColumn(serializers.Serializer[Any]):
    name = serializers.CharField()
    type = serializers.CharField(help_text="The engine's type, such as VARCHAR or BIGINT.")
    meaning = serializers.CharField()
    unit = serializers.CharField(allow_null=True, help_text="Such as `ms` or `bytes`; null if there is none.")
    example = serializers.JSONField()


class SchemaLinks(serializers.Serializer[Any]):
    self = Link()
    parent = Link()


class QuerySchema(serializers.Serializer[Any]):
    """The columns of the table that queries read."""

    _links = SchemaLinks()
    table = serializers.CharField()
    columns = SchemaColumn(many=True)
