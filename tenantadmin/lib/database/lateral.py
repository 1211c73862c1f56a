"""Read the first rows for each of several values by an index, instead of the whole table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from django.db.models import Model
from django.db.models.expressions import RawSQL

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.db.models import QuerySet
    from django.db.models.query import RawQuerySet

    #: SQL and its parameters.
    Sql = tuple[str, tuple[Any, ...]]

Row = TypeVar("Row", bound=Model)


def first_of_each(rows: QuerySet[Any], count: int, column: str, values: Sequence[Any], *, kind: str) -> Sql:
    """Return SQL of the first ``count`` of the ordered ``rows`` for each of ``values`` in ``column``.

    ``kind`` is the values' type in PostgreSQL. With one condition for all of them, PostgreSQL may read the
    whole table in the order of the rows until enough match.
    """
    of_one = rows.filter(**{column: RawSQL("ids.id", [])})[:count]
    sql, parameters = of_one.query.sql_with_params()
    return (
        f"SELECT first.* FROM unnest(%s::{kind}[]) AS ids(id) CROSS JOIN LATERAL ({sql}) first",  # noqa: S608
        (list(values), *parameters),
    )


def merge_first(model: type[Row], branches: Sequence[Sql], count: int, *, time: str) -> RawQuerySet[Row]:
    """Return the newest ``count`` rows of all ``branches`` by the column ``time``, each row once."""
    union = " UNION ALL ".join(f"({sql})" for sql, _ in branches)
    return model._default_manager.raw(
        f"SELECT DISTINCT ON ({time}, id) * FROM ({union}) merged"  # noqa: S608 - SQL of the branches
        f" ORDER BY {time} DESC, id DESC LIMIT %s",
        [*(value for _, values in branches for value in values), count],
    )
