"""Statements that Spark can run, as a query process translates them. Imports no Django."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from logs.sql.engines import spark_sql
from logs.sql.engines.spark_values import NoTranslation
from logs.sql.refusals import character_offset

if TYPE_CHECKING:
    import pyarrow as pa

    from logs.sql.protocol import ResultColumn


@dataclass(frozen=True, slots=True)
class SparkStatement:
    """A statement for Spark, with the names and types that DuckDB gives to its columns.

    Attributes:
        relations: how many tables and subqueries its plan has.
        reads: the days that it may read.
        is_repeatable: it does not depend on the time or on random numbers.
    """

    sql: str
    relations: int
    columns: tuple[ResultColumn, ...]
    schema: pa.Schema
    reads: tuple[str, ...]
    is_repeatable: bool


@dataclass(frozen=True, slots=True)
class DuckdbStatement:
    """A statement that only DuckDB can run: ``what`` in it has no translation, and the days it may read."""

    what: str
    reads: tuple[str, ...]


def answer_translation(
    tree: dict[str, Any], statement: str, run_over_nothing: Callable[[], tuple[dict[str, Any], memoryview]]
) -> tuple[dict[str, Any], memoryview]:
    """Return what a query process answers to a request for the translation of a checked statement.

    The body of a translation is DuckDB's result over no rows, for the types of its columns.
    """
    try:
        translation = spark_sql.translate(tree)
    except NoTranslation as missing:
        return _untranslated(missing.what, character_offset(statement.encode(), missing.position))
    document, body = run_over_nothing()
    if [type_ for _, type_ in document["columns"]] != list(translation.types):
        return _untranslated("a column's type", None)
    head = {"kind": "translated", "sql": translation.sql, "relations": translation.relations}
    return {**document, **head}, body


def _untranslated(what: str, position: int | None) -> tuple[dict[str, Any], memoryview]:
    return {"kind": "not translated", "what": what, "position": position}, memoryview(b"")
