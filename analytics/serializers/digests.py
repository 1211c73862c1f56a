"""Serializers of digests, of preferences and of exchanges with the language model."""

# ruff: noqa: N815  (fields have the names of the JSON members)

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from analytics.digest.facts import NameKind, Unit
from analytics.models import DigestFrequency
from analytics.models import ModelExchange as StoredExchange
from tenantadmin.lib.http.serializers import (
    ItemList,
    Link,
    OneOfField,
    StrictCharField,
    StrictSerializer,
    TimestampField,
)

DIGEST_KINDS = ["day", "week"]
DIGEST_UNITS = [unit.value for unit in Unit]


class DigestFact(serializers.Serializer[Any]):
    """A number of a digest."""

    id = serializers.CharField(help_text="Texts refer to it as `{id}`.")
    value = serializers.FloatField(allow_null=True)
    unit = serializers.ChoiceField(choices=DIGEST_UNITS)
    sql = serializers.CharField(help_text="The statement over `proxy_logs` that gives the value.")


class DigestName(serializers.Serializer[Any]):
    """Something that a text refers to and that is not measured."""

    id = serializers.CharField(help_text="Texts refer to it as `{id}`.")
    kind = serializers.ChoiceField(choices=[kind.value for kind in NameKind])
    value = serializers.CharField(allow_blank=True)
    href = serializers.CharField(allow_null=True, help_text="Where to read more.")


class DigestSection(serializers.Serializer[Any]):
    id = serializers.CharField()
    heading = serializers.CharField()
    text = serializers.CharField(help_text="Sentences, one per line, with `{id}` for each fact and name.")
    template = serializers.CharField(
        help_text="The text of this service; it differs from `text` where a language model wrote that."
    )


class DigestLinks(serializers.Serializer[Any]):
    self = Link()
    parent = Link()


class DigestDocument(serializers.Serializer[Any]):
    """What happened in a day or a week, each number with its SQL."""

    _links = DigestLinks(label="")
    tenantId = serializers.UUIDField()
    kind = serializers.ChoiceField(choices=DIGEST_KINDS)
    period = serializers.CharField(help_text="`2026-03-01`, or `2026-W09`.")
    to = serializers.DateField()
    quiet = serializers.BooleanField(help_text="Nothing was unusual: one section of one sentence.")
    rewritten = serializers.BooleanField(help_text="A language model wrote the texts.")
    madeAt = TimestampField()
    facts = DigestFact(many=True)
    names = DigestName(many=True)
    sections = DigestSection(many=True)

    def get_fields(self) -> dict[str, Any]:
        return {"from": serializers.DateField(), **super().get_fields()}


class DigestPreferenceBody(StrictSerializer):
    """Which digests to get."""

    frequency = OneOfField(choices=DigestFrequency.values)


class DigestPreference(serializers.Serializer[Any]):
    """Which digests of a tenant a user gets by mail."""

    tenantId = serializers.UUIDField()
    tenantName = serializers.CharField()
    frequency = serializers.ChoiceField(choices=DigestFrequency.values)


class DigestPreferences(ItemList):
    digests = DigestPreference(many=True)


class UnsubscribeBody(StrictSerializer):
    """What RFC 8058 has mail programs send, as a form."""

    may_be_absent = True

    def get_fields(self) -> dict[str, Any]:
        return {"List-Unsubscribe": StrictCharField(required=False, help_text="`One-Click`.")}


class UnsubscribeParameters(StrictSerializer):
    """The signed token of a mail."""

    t = StrictCharField(max_length=1000, required=False, allow_blank=True, help_text="The token of the link.")


class ModelExchange(serializers.Serializer[Any]):
    """One request to the language model, and its answer."""

    id = serializers.IntegerField()
    period = serializers.CharField(help_text="Of the digest.")
    sentAt = TimestampField()
    address = serializers.CharField(help_text="Where it was sent.")
    request = serializers.JSONField(help_text="The whole body that was sent.")
    answer = serializers.CharField(allow_blank=True)
    outcome = serializers.ChoiceField(choices=StoredExchange.Outcome.values)
    reason = serializers.CharField(allow_null=True, help_text="Why it was refused, or what failed.")


class ModelExchanges(serializers.Serializer[Any]):
    exchanges = ModelExchange(many=True)
