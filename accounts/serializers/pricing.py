"""The prices of a warehouse in a tenant's configuration. Contract: TenantConfig."""
# ruff: noqa: N815  (fields have the names of the JSON members)

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any, Final

from rest_framework import serializers
from rest_framework.exceptions import ErrorDetail

from accounts.tenants.pricing import BILLINGS, MAX_PRICES, MAX_SECONDS
from tenantadmin.lib.http.serializers import (
    DayField,
    JsonIntegerField,
    OneOfField,
    StrictCharField,
    StrictSerializer,
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

    def get_fields(self) -> dict[str, Any]:
        first = DayField(help_text="The first day (UTC) of this price.")
        return {"from": first, **super().get_fields()}

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        price: dict[str, Any] = super().to_internal_value(data)
        return {**price, "from": price["from"].isoformat()}


class PricingField(serializers.ListField):
    """Prices, the oldest first."""

    child = Price()

    def __init__(self, **options: Any) -> None:
        super().__init__(max_length=MAX_PRICES, **options)

    def to_internal_value(self, data: Any) -> list[Any]:
        prices: list[Any] = super().to_internal_value(data)
        for number, (before, price) in enumerate(pairwise(prices), start=1):
            if price["from"] <= before["from"]:
                raise _refuse(number, "from", "Each price begins later than the one before it.")
            if price["currency"] != before["currency"]:
                raise _refuse(number, "currency", "All prices of a list have one currency.")
        return prices


def _refuse(number: int, field: str, message: str) -> serializers.ValidationError:
    return serializers.ValidationError({str(number): {field: [ErrorDetail(message, code="invalid")]}})
