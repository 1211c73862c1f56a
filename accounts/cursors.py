"""Opaque cursors of lists that are read page by page, newest first. Contract: Change history, Events."""

from __future__ import annotations

import base64
import datetime as dt
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from django.db.models import Model

from tenantadmin.lib.core.errors import BadRequest, Detail
from tenantadmin.lib.core.rendering import is_storable

if TYPE_CHECKING:
    from django.db.models import QuerySet

Row = TypeVar("Row", bound=Model)


def cut_page(rows: QuerySet[Row], limit: int) -> tuple[Sequence[Row], bool]:
    """Return the first ``limit`` rows, and whether there are more."""
    found = list(rows[: limit + 1])
    return found[:limit], len(found) > limit


def older_than(rows: QuerySet[Row], cursor: str, *, time: str) -> QuerySet[Row]:
    """Return the rows after a cursor ``[time, id]`` in the order newest first. ``time`` names the field.

    Raises:
        BadRequest: the cursor is not from such a list.
    """
    text, pk = read_cursor(cursor, (str, int))
    moment = _read_moment(text)
    # PostgreSQL would not use the index for a comparison of whole rows.
    return rows.filter(**{f"{time}__lte": moment}).exclude(**{time: moment, "pk__gte": pk})


def write_cursor(values: list[str | int]) -> str:
    """Return the cursor of the last row of a page."""
    return base64.urlsafe_b64encode(json.dumps(values).encode()).rstrip(b"=").decode()


def read_cursor(text: str, types: tuple[type, ...]) -> list[Any]:
    """Return the values of a cursor.

    Raises:
        BadRequest: it is no cursor with values of these ``types``.
    """
    try:
        values = json.loads(base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True))
    except ValueError:
        raise invalid_cursor() from None
    if not isinstance(values, list) or [type(value) for value in values] != list(types):
        raise invalid_cursor()
    if not all(map(_is_comparable, values)):
        raise invalid_cursor()
    return values


def _is_comparable(value: str | int) -> bool:
    """Return True if PostgreSQL can compare with the value."""
    return abs(value) < 2**63 if isinstance(value, int) else is_storable(value)


def _read_moment(text: str) -> dt.datetime:
    try:
        moment = dt.datetime.fromisoformat(text)
    except ValueError:
        raise invalid_cursor() from None
    if moment.tzinfo is None:
        raise invalid_cursor()
    return moment


def invalid_cursor() -> BadRequest:
    message = "The cursor is invalid. Take it from the 'next' link of the previous page."
    return BadRequest(message, details=[Detail("/cursor", "invalid", message)])
