"""Search rows of the admin site by whole values and prefixes, which indexes find."""

from __future__ import annotations

import datetime as dt
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from django.db import models
from django.db.models import Q
from django.db.models.constants import LOOKUP_SEP

from tenantadmin.lib.core.emails import normalize_email

if TYPE_CHECKING:
    from collections.abc import Iterable

#: At most this many rows of another model are considered, such as users whose email has the prefix.
MAX_RELATED: Final = 100
#: A condition that no row meets.
NONE: Final = Q(pk__in=[])


def matching(model: type[models.Model], lookups: Iterable[str], term: str) -> Q:
    """Return the condition for rows in which one of ``lookups`` matches the whole ``term``.

    A lookup is a Django lookup such as ``email__startswith``; ``email`` means the whole value. Rows of
    another model (``user__email``) are found by a query of their own, so that no query joins large tables.
    """
    condition = NONE
    if "\0" not in term:
        for lookup in lookups:
            condition |= _condition(model, lookup, term)
    return condition


def _condition(model: type[models.Model], lookup: str, term: str) -> Q:
    name, _, rest = lookup.partition(LOOKUP_SEP)
    field = model._meta.get_field(name)
    if field.is_relation and rest:
        return _of_related(model, field, rest, term)
    value = _value(getattr(field, "target_field", field), term)
    return NONE if value is None else Q(**{f"{name}__{rest or 'exact'}": value})


def _of_related(model: type[models.Model], field: Any, rest: str, term: str) -> Q:
    found = field.related_model._default_manager.filter(_condition(field.related_model, rest, term))
    ids = list(found.order_by("pk").values_list("pk", flat=True)[:MAX_RELATED])
    if not ids:
        return NONE
    if field.many_to_many:
        own = model._default_manager.filter(**{f"{field.name}__in": ids}).order_by("pk")
        return Q(pk__in=list(own.values_list("pk", flat=True)[:MAX_RELATED]))
    return Q(**{f"{field.name}__in": ids})


def _value(field: Any, term: str) -> Any:
    """Return ``term`` as a value of ``field``, or None if no row can have it."""
    with suppress(ValueError):
        if isinstance(field, models.UUIDField):
            return UUID(term)
        if isinstance(field, models.DateField):
            return dt.date.fromisoformat(term)
        return normalize_email(term) if "@" in term else term
    return None
