"""Serializers of published queries and of verifications."""

# ruff: noqa: N815  (fields have the names of the JSON members)

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from analytics.models import Kind
from analytics.published.documents import MAX_DIFFERENCES
from analytics.published.verify import InvalidKey, check_key
from analytics.serializers.summaries import _Whole
from tenantadmin.lib.http.serializers import (
    OneOfField,
    StrictCharField,
    StrictSerializer,
)


class PublishedQuerySerializer(serializers.Serializer[Any]):
    """A query over `proxy_logs`, and the fields that it gives."""

    name = serializers.CharField(
        help_text="The document, with the array in it if the rows are the elements of an array."
    )
    about = serializers.CharField()
    text = serializers.CharField(help_text="SQL. The parameters are written as `$first` and `$last`.")
    parameters = serializers.ListField(
        child=serializers.CharField(), help_text="`first` and `last`: days (`YYYY-MM-DD`), both included."
    )
    fields = serializers.ListField(child=serializers.CharField())  # type: ignore[assignment]  # a member


class PublishedQueries(serializers.Serializer[Any]):
    queries = PublishedQuerySerializer(many=True)


class VerificationBody(StrictSerializer):
    """Which document to verify."""

    document = OneOfField(choices=Kind.values)
    period = StrictCharField(
        required=False,
        allow_blank=True,
        default="",
        max_length=10,
        help_text="`2026-03-01`, `2026-03` or `2026`; for `users`, which covers the whole history, empty.",
    )
    userId = StrictCharField(
        required=False,
        allow_blank=True,
        trim_whitespace=False,
        help_text="`userName` of the log, for the day, month or year of one user.",
    )

    def validate(self, attrs: Any) -> Any:
        try:
            check_key(Kind(attrs["document"]), attrs["period"], is_of_user="userId" in attrs)
        except InvalidKey as error:
            detail = serializers.ErrorDetail(str(error), "invalid")
            raise serializers.ValidationError({error.field: [detail]}) from error
        return attrs


class UnequalValue(serializers.Serializer[Any]):
    """A value of the document that is not what the query gives. Null can also mean absent."""

    path = serializers.CharField(help_text="JSON Pointer into the document.")
    document = serializers.JSONField(allow_null=True)
    query = serializers.JSONField(allow_null=True)


class RunQuerySerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    sql = serializers.CharField(help_text="The statement to run yourself.")
    ms = _Whole()


class VerificationAnswer(serializers.Serializer[Any]):
    """Whether a document says what SQL over the log says."""

    equal = serializers.BooleanField()
    fields = _Whole(help_text="How many values were compared.")  # type: ignore[assignment]  # a member
    unequalCount = _Whole()
    unequal = UnequalValue(many=True, help_text=f"The first {MAX_DIFFERENCES} values that differ.")
    queries = RunQuerySerializer(many=True)
