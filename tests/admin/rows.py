"""Create a valid row of any model, with the rows to which it refers."""

from __future__ import annotations

import datetime as dt
import uuid
from itertools import count
from typing import TYPE_CHECKING, Any

from django.apps import apps
from django.contrib.postgres.fields import ArrayField
from django.db import models

from tenantadmin.lib.core.timestamps import now

if TYPE_CHECKING:
    from collections.abc import Callable

OURS = ("accounts", "tosapp", "rules", "logs", "analytics")
#: Tables that only join two others: they are edited where those are.
_JOINS = {"Account_owners"}

#: A new number for each row, so that rows have different values.
_numbers = count(1)

#: Functions that return a value, by type of field. Subclasses come before their base classes.
_VALUES: list[tuple[type[models.Field[Any, Any]], Callable[[int], Any]]] = [
    (ArrayField, lambda number: [str(uuid.UUID(int=number))]),
    (models.JSONField, lambda number: {"number": number, "inner": {"text": "<b>ä</b>"}}),
    (models.BinaryField, lambda number: number.to_bytes(32, "big")),
    (models.BooleanField, lambda _: True),
    (models.DateTimeField, lambda _: now()),
    (models.DateField, lambda number: dt.date(2026, 1, 1) + dt.timedelta(days=number)),
    (models.UUIDField, lambda _: uuid.uuid4()),
    (models.EmailField, lambda number: f"person-{number}@example.org"),
    (models.FloatField, lambda number: number / 1000),
    (models.IntegerField, lambda number: number),
    (models.CharField, lambda number: f"t{number}"),
    (models.TextField, lambda number: f"text {number}"),
]

#: Values of fields for which any value of their type is not enough.
_SPECIAL: dict[tuple[str, str], Any] = {
    ("Digest", "document"): {
        "kind": "day",
        "period": "2026-03-01",
        "from": "2026-03-01",
        "to": "2026-03-01",
        "quiet": True,
        "facts": [],
        "names": [],
        "sections": [{"id": "totals", "heading": "Totals", "text": "Inner text"}],
    },
    ("Digest", "rewritten"): None,
    ("Alert", "channels"): [{"type": "slack", "url": "https://hooks.example.org/secret"}],
    # A token that no other one has made.
    ("PersonalAccessToken", "made_with"): None,
    ("AlertDelivery", "channel"): {"type": "slack", "url": "https://hooks.example.org/secret"},
}


def our_models() -> list[type[models.Model]]:
    """Return the models of our apps."""
    return [
        model
        for label in OURS
        for model in apps.get_app_config(label).get_models()
        if model.__name__ not in _JOINS
    ]


def make_row(model: type[models.Model], **given: Any) -> Any:
    """Create a row with a value in every field, and the rows to which it refers."""
    number = next(_numbers)
    for field in model._meta.concrete_fields:
        if field.name not in given and field.attname not in given and not field.auto_created:
            given[field.name] = _value_for(field, number)
    row = model._default_manager.create(**given)
    for many in model._meta.many_to_many:
        getattr(row, many.name).add(make_row(many.related_model))
    return row


def _value_for(field: models.Field[Any, Any], number: int) -> Any:
    if (key := (field.model.__name__, field.name)) in _SPECIAL:
        return _SPECIAL[key]
    if field.is_relation:
        assert isinstance(field.related_model, type)
        return make_row(field.related_model)
    if field.choices:
        return field.flatchoices[0][0]
    return next(make(number) for kind, make in _VALUES if isinstance(field, kind))
