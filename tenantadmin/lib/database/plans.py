"""Plans of PostgreSQL: new ones for the values of each call, and by an index for each of several values.

`docs/decisions/0012-prepared-queries.md` says why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from django.db import NotSupportedError, connection
from django.db.models import Model
from django.db.models.expressions import RawSQL

if TYPE_CHECKING:
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


@contextmanager
def planned_for_values() -> Iterator[None]:
    """Plan the statements of the `with` block for their values. One plan for all may read a whole table."""
    connection.ensure_connection()
    session = connection.connection
    before, session.prepare_threshold = session.prepare_threshold, None
    try:
        yield
    finally:
        session.prepare_threshold = before


def retry_after_migration(
    execute: Callable[..., Any],
    sql: str,
    params: Any,
    many: bool,  # noqa: FBT001 - Django passes it so
    context: dict[str, Any],
) -> Any:
    """Run a prepared statement again if a migration has changed the type of its columns (an execute wrapper).

    In a transaction it fails. The rollback makes the connection forget its prepared statements.
    """
    try:
        return execute(sql, params, many, context)
    except NotSupportedError:
        if context["connection"].in_atomic_block:
            raise
        context["cursor"].execute("DEALLOCATE ALL")
        return execute(sql, params, many, context)
