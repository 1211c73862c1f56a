"""Fill the tables of all models, so that plans show which queries read more than a page of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.contrib.postgres.fields import ArrayField
from django.db import connection, models

from tests.admin.rows import OURS, make_row

if TYPE_CHECKING:
    from collections.abc import Iterable

#: SQL of the value of a row, by type of field: from the first row `o` and the number `n`.
_VALUES: Final[list[tuple[type[models.Field[Any, Any]], str]]] = [
    (ArrayField, "o.{0}"),
    (models.JSONField, "o.{0}"),
    (models.BinaryField, "sha256((n || '{0}')::bytea)"),
    (models.DateTimeField, "o.{0} + n * interval '1 second'"),
    (models.DateField, "o.{0} + n"),
    (models.UUIDField, "gen_random_uuid()"),
    (models.IntegerField, "o.{0} + n"),
    (models.EmailField, "n || '-' || o.{0}"),
    (models.CharField, "o.{0} || '-' || n"),
]

#: A text of this length has room for another number.
_LONG: Final = 20


def fill(all_models: Iterable[type[models.Model]], *, rows: int) -> None:
    """Make ``rows`` rows of each model. Each refers to other rows than the others of its table."""
    waiting = list(all_models)
    done: set[Any] = set()
    while waiting:
        model = next(it for it in waiting if _referred(it) <= done | {it})
        _fill(model, rows)
        waiting.remove(model)
        done.add(model)
    with connection.cursor() as cursor:
        # As VACUUM does, which cannot run in a transaction.
        cursor.execute(
            "SELECT gin_clean_pending_list(index.oid) FROM pg_class AS index JOIN pg_am ON pg_am.oid = relam "
            "WHERE amname = 'gin' AND relkind = 'i' AND relnamespace = 'public'::regnamespace"
        )
        cursor.execute("ANALYZE")


def _referred(model: type[models.Model]) -> set[Any]:
    return {field.related_model for field in _columns(model) if field.is_relation}


def _columns(model: type[models.Model]) -> list[Any]:
    """Return the fields to fill: not the key, and no reference to another package's table or to its own."""
    fields: list[Any] = [field for field in model._meta.concrete_fields if not field.auto_created]
    return [
        it
        for it in fields
        if not it.is_relation
        or (it.related_model not in {None, model} and it.related_model._meta.app_label in OURS)
    ]


def _fill(model: type[models.Model], rows: int) -> None:
    row = make_row(model)
    columns, values, joins = [], [], []
    for field in _columns(model):
        columns.append(f'"{field.column}"')
        if field.is_relation:
            related: Any = field.related_model
            key = related._meta.pk.column
            rows_of = f"SELECT {key} AS id, row_number() OVER ()::int AS n FROM {related._meta.db_table}"
            joins.append(f"JOIN ({rows_of}) AS r_{field.column} USING (n)")
            values.append(f"r_{field.column}.id")
        else:
            values.append(_sql_of(field))
    table, key = model._meta.db_table, model._meta.pk.column
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {table} ({', '.join(columns)}) SELECT {', '.join(values)} "
            f"FROM {table} AS o CROSS JOIN generate_series(1, {rows}) AS numbers(n) {' '.join(joins)} "
            f"WHERE o.{key} = %s ON CONFLICT DO NOTHING",
            [row.pk],
        )


def _sql_of(field: Any) -> str:
    column = f'"{field.column}"'
    if field.choices:
        names = ", ".join(f"'{name}'" for name, _ in field.flatchoices)
        return f"(ARRAY[{names}])[1 + n %% {len(field.flatchoices)}]"
    if (field.max_length or _LONG) < _LONG:
        return "n::text"
    pattern = next((sql for kind, sql in _VALUES if isinstance(field, kind)), "o.{0}")
    return pattern.format(column) if "'{0}'" not in pattern else pattern.format(field.column)
