"""Serializers of requests on tenants and their configuration. Contract: TenantConfig."""
# ruff: noqa: N815  (fields have the names of the JSON members)

from __future__ import annotations

import re
from typing import Any, Final

from rest_framework import serializers
from rest_framework.exceptions import ErrorDetail

from accounts.models.tenants import StaffApproval
from accounts.serializers.fields import FqdnField, NameField
from accounts.serializers.history import CommentParameters
from accounts.tenants.config import SentConfig
from accounts.tenants.pricing import BILLINGS, MAX_PRICES, MAX_SECONDS
from accounts.tenants.warehouse_urls import ADAPTER_TYPES, looks_like_secret
from tenantadmin.lib.http.serializers import (
    DayField,
    IgnoredField,
    JsonBooleanField,
    JsonIntegerField,
    OneOfField,
    QueryBooleanField,
    StrictCharField,
    StrictSerializer,
    StrictUuidField,
    TimestampField,
    validated,
)

_CURRENCY: Final = re.compile(r"[A-Z]{3}")
_PER_HOUR: Final = re.compile(r"(0|[1-9][0-9]{0,8})(\.[0-9]{1,4})?")


class CurrencyField(StrictCharField):
    """A currency code such as `USD`."""

    def to_internal_value(self, data: Any) -> str:
        text = super().to_internal_value(data)
        if not _CURRENCY.fullmatch(text):
            raise serializers.ValidationError("Give three capital letters, such as 'USD' (ISO 4217).")
        return text


class PerHourField(StrictCharField):
    """An amount as text, so that no digit is lost."""

    def to_internal_value(self, data: Any) -> str:
        text = super().to_internal_value(data)
        if not _PER_HOUR.fullmatch(text):
            raise serializers.ValidationError(
                "Give a number as text, such as '3.00': at most 9 digits before the point, 4 after it."
            )
        return text


class Price(StrictSerializer):
    """What an hour of the warehouse costs from a day on."""

    from_ = DayField(help_text="The first day (UTC) of this price.")
    host = StrictCharField(
        required=False,
        max_length=253,
        help_text="The `serverHostname` of the log that it is of. Default: every other.",
    )
    currency = CurrencyField(max_length=3, help_text="ISO 4217; the same in the whole list.")
    perHour = PerHourField(
        max_length=14, help_text="A decimal number as text, such as `3.00`; at most 4 decimals."
    )
    billing = OneOfField(
        choices=BILLINGS,
        help_text="`suspending`: the time awake. `busy`: the time of execution. `always-on`: all the time.",
    )
    autoSuspendSeconds = JsonIntegerField(
        required=False, min_value=0, max_value=MAX_SECONDS, help_text="Default 300."
    )
    minimumSeconds = JsonIntegerField(
        required=False,
        min_value=0,
        max_value=MAX_SECONDS,
        help_text="What each start bills at least. Default 60.",
    )

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        price: dict[str, Any] = super().to_internal_value(data)
        return {**price, "from": price["from"].isoformat()}


class PricingField(serializers.ListField):
    """Prices, the oldest first for each host."""

    child = Price()

    def __init__(self, **options: Any) -> None:
        super().__init__(max_length=MAX_PRICES, **options)

    def to_internal_value(self, data: Any) -> list[Any]:
        prices: list[Any] = super().to_internal_value(data)
        last: dict[str | None, str] = {}
        for number, price in enumerate(prices):
            host = price.get("host")
            if price["from"] <= last.get(host, ""):
                raise _refuse(number, "from", "Each price of a host begins later than the one before it.")
            if price["currency"] != prices[0]["currency"]:
                raise _refuse(number, "currency", "All prices of a list have one currency.")
            last[host] = price["from"]
        return prices


def _refuse(number: int, field: str, message: str) -> serializers.ValidationError:
    return serializers.ValidationError({str(number): {field: [ErrorDetail(message, code="invalid")]}})


_MAX_LABELS = 100
_MAX_FQDNS = 1000
_MAX_PER_USER_TABLES = 100
#: Queries of the log name all patterns, and have a limit.
_MAX_PATTERN_BYTES = 10_000
_MAX_VIEWS = 1_000
_MAX_VIEW_BYTES = 30_000


class FqdnListField(serializers.ListField):
    """Host names without repetition."""

    child = FqdnField()

    def to_internal_value(self, data: Any) -> list[Any]:
        names: list[Any] = super().to_internal_value(data)
        for index, name in enumerate(names):
            if name in names[:index]:
                raise serializers.ValidationError(
                    {
                        str(index): [
                            serializers.ErrorDetail(
                                f"'{name}' is listed more than once.", code="duplicate-fqdn"
                            )
                        ]
                    }
                )
        return names


class PlainText(StrictCharField):
    """A text of the connection, never a credential."""

    def to_internal_value(self, data: Any) -> str:
        text = super().to_internal_value(data)
        if looks_like_secret(text):
            raise serializers.ValidationError(
                "This looks like a credential. Store it in the Gateway's secret store and name it in "
                "'credentialRef'.",
                code="looks-like-secret",
            )
        return text


class TablePatternsField(serializers.ListField):
    """Patterns of table names, in which `*` matches any characters."""

    child = PlainText(max_length=500)

    def to_internal_value(self, data: Any) -> list[Any]:
        patterns: list[Any] = super().to_internal_value(data)
        if sum(len(pattern.encode()) for pattern in patterns) > _MAX_PATTERN_BYTES:
            message = f"The patterns may have at most {_MAX_PATTERN_BYTES} bytes together. Use '*'."
            raise serializers.ValidationError(message, code="max-length")
        return patterns


class ViewsField(serializers.DictField):
    """The tables that each view reads, by the name of the view."""

    child = serializers.ListField(child=PlainText(max_length=500), max_length=100)

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        views: dict[str, Any] = super().to_internal_value(data)
        if len(views) > _MAX_VIEWS:
            raise serializers.ValidationError(f"At most {_MAX_VIEWS:,} views.", code="max-length")
        name = PlainText(max_length=500)
        for view in views:
            name.run_validation(view)
        # A query has the view beside each of its tables.
        if (
            sum(len(f"{view}{table}".encode()) for view, own in views.items() for table in own)
            > _MAX_VIEW_BYTES
        ):
            message = (
                f"The names of views and their tables may have at most {_MAX_VIEW_BYTES:,} bytes together."
            )
            raise serializers.ValidationError(message, code="max-length")
        return views


class Warehouse(StrictSerializer):
    """The connection to the warehouse, without secrets."""

    adapterType = OneOfField(choices=ADAPTER_TYPES)
    serverHostname = PlainText(max_length=253)
    port = JsonIntegerField(required=False, min_value=1, max_value=65_535)
    httpPath = PlainText(required=False, max_length=500)
    database = PlainText(required=False, max_length=200)
    schema = PlainText(required=False, max_length=200)
    warehouseName = PlainText(required=False, max_length=200)
    credentialRef = PlainText(
        required=False, max_length=500, help_text="Names an entry of the Gateway's secret store."
    )
    perUserTables = TablePatternsField(
        required=False,
        max_length=_MAX_PER_USER_TABLES,
        help_text="Patterns of the tables whose rows or columns depend on who asks, in any spelling. "
        "Rules may not share results of statements that read them. `[]`: there are none.",
    )
    views = ViewsField(
        required=False,
        help_text="The tables that each view reads, by the name of the view: at most 1,000. A result of a "
        "view is stale, and differs per user, with those of its tables.",
    )
    pricing = PricingField(required=False)


class WarehouseText(StrictSerializer):
    """An address of a warehouse to read."""

    text = StrictCharField(
        max_length=4000,
        help_text="A URL, a JDBC string, or libpq's `host=… dbname=…`. Credentials in it are ignored.",
    )


class Caching(StrictSerializer):
    """The caching settings that apply unless a rule says otherwise."""

    cacheEnabled = JsonBooleanField(required=False, help_text="Default true.")
    ttlSeconds = JsonIntegerField(
        required=False, min_value=1, max_value=31_536_000, help_text="Default 86400."
    )
    maxEntryBytes = JsonIntegerField(required=False, min_value=1, max_value=2**53)


class Logging(StrictSerializer):
    """What the Gateway logs of requests."""

    retentionDays = JsonIntegerField(required=False, min_value=1, max_value=36_500, help_text="Default 400.")
    storeParameterValues = JsonBooleanField(required=False, help_text="Default true.")


class StaffAccess(StrictSerializer):
    """What happens when staff want access to the tenant's logs."""

    staffApproval = OneOfField(
        choices=StaffApproval.choices,
        required=False,
        help_text="`notify` (default): owners get a mail when staff take access; `required`: an owner "
        "approves it first.",
    )


class LabelsField(serializers.DictField):
    """Labels: any text as key and value."""

    child = StrictCharField(max_length=500, allow_blank=True)

    def to_internal_value(self, data: Any) -> Any:
        labels = super().to_internal_value(data)
        if len(labels) > _MAX_LABELS:
            raise serializers.ValidationError(f"At most {_MAX_LABELS} labels.", code="max-length")
        for name in labels:
            if not 1 <= len(name) <= 100:
                raise serializers.ValidationError({name: ["A label's name has 1 to 100 characters."]})
        return labels


class WritableConfig(StrictSerializer):
    """The members of a configuration that can be written."""

    tenantName = NameField(help_text="1 to 100 characters, unique within the account.")
    fqdns = FqdnListField(required=False, max_length=_MAX_FQDNS)
    warehouse = Warehouse(required=False)
    defaults = Caching(required=False)
    logging = Logging(required=False)
    labels = LabelsField(required=False)


class TenantCreate(WritableConfig):
    """A tenant to create."""

    accountId = StrictUuidField()


class TenantConfigBody(WritableConfig):
    """A configuration to replace the stored one. Read-only members may be sent back unchanged."""

    tenantId = StrictUuidField(required=False)
    accountId = StrictUuidField(required=False, help_text="Cannot be changed.")
    createdAt = TimestampField(required=False)
    seq = JsonIntegerField(required=False, min_value=0, help_text="A stale one is a 409.")
    access = StaffAccess(required=False, help_text="Stays if absent. Only signed-in owners change it.")
    plan = IgnoredField(required=False)
    modifiedAt = IgnoredField(required=False)
    kind = IgnoredField(required=False)


def parse_config(document: Any) -> SentConfig:
    """Return the change that a body of ``PUT …/config`` asks for.

    Raises:
        ValidationFailed: the shape is invalid; each error names the place and how to correct it.
    """
    sent = validated(TenantConfigBody, document)
    return SentConfig(
        document=sent,
        tenant_id=sent.get("tenantId"),
        account_id=sent.get("accountId"),
        created_at=sent.get("createdAt"),
        seq=sent.get("seq"),
    )


class IfChangedParameters(StrictSerializer):
    ifChanged = QueryBooleanField(
        default=False,
        help_text="Write nothing if the document equals the stored one, so that the cache stays warm.",
    )


class WriteConfigParameters(IfChangedParameters, CommentParameters):
    pass


class ManifestParameters(StrictSerializer):
    since = TimestampField(required=False, help_text="Only entries changed after this moment.")
    name = StrictCharField(
        required=False,
        allow_blank=True,
        trim_whitespace=False,
        max_length=400,
        help_text="A part of the tenant's name, whatever its case.",
    )
    includeDeleted = QueryBooleanField(default=False, help_text="List tombstones too.")
