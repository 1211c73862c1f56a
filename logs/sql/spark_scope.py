"""Names and types in the translation to Spark's SQL. Imports no Django."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from logs.sql.names import fold

if TYPE_CHECKING:
    from collections.abc import Mapping


class NoTranslation(Exception):
    """A part of the statement, ``what``, may mean something else in Spark."""

    def __init__(self, what: str, *, position: int | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.position = position


@dataclass(frozen=True, slots=True)
class Value:
    """An expression: its text in Spark, its type in DuckDB, and what it contains."""

    sql: str
    type: str
    is_aggregate: bool = False
    is_window: bool = False
    is_constant: bool = False
    #: An aggregate with nothing beside it.
    is_only_aggregate: bool = False


@dataclass(frozen=True, slots=True)
class Relation:
    """A table of a FROM clause: its name, and its columns by their names in the statement."""

    name: str
    columns: tuple[tuple[str, Value], ...]


def only(record: dict[str, Any], *known: str) -> None:
    """Refuse a record with a field that its rule does not read, unless the field is an empty list."""
    for name, value in record.items():
        if value not in ([], {}) and name not in {"type", "class", "alias", "query_location", *known}:
            raise NoTranslation(
                f"{record.get('type', 'record')} {name}", position=record.get("query_location")
            )


def fail(what: str, record: dict[str, Any]) -> NoTranslation:
    return NoTranslation(what, position=record.get("query_location"))


@dataclass(frozen=True, slots=True)
class Scope:
    """The names that an expression may use."""

    relations: tuple[Relation, ...]
    aliases: Mapping[str, Value] = field(default_factory=dict)

    def find(self, record: dict[str, Any]) -> Value:
        path = [fold(part) for part in record["column_names"]]
        if len(path) > 2:
            raise fail("a name of three parts", record)
        candidates = [
            value
            for relation in self.relations
            if len(path) == 1 or relation.name == path[0]
            for name, value in relation.columns
            if fold(name) == path[-1]
        ]
        if len(path) == 1 and path[0] in self.aliases:
            # DuckDB prefers the one here and the other there.
            candidates.append(self.aliases[path[0]])
        if len({value.sql for value in candidates}) != 1:
            raise fail(f'the name "{".".join(path)}"', record)
        return candidates[0]

    def all_columns(self, relation_name: str | None) -> list[tuple[str, Value]]:
        return [
            column
            for relation in self.relations
            if not relation_name or relation.name == fold(relation_name)
            for column in relation.columns
        ]


DIRECTIONS: Final = {"ORDER_DEFAULT": "ASC", "ASCENDING": "ASC", "DESCENDING": "DESC"}
NULL_ORDERS: Final = {
    "ORDER_DEFAULT": " NULLS LAST",
    "NULLS LAST": " NULLS LAST",
    "NULLS FIRST": " NULLS FIRST",
}
