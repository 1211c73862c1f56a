"""Translate a checked statement to Spark's SQL, if the same rows are certain. Imports no Django.

Everything else has no translation. `tests/logs/sql/test_spark.py` compares the values of each rule with
DuckDB's. Names of a statement never reach Spark: relations are ``r1``, columns ``c1``. The translation tracks
DuckDB's types, because most differences come from implicit casts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from logs import columns
from logs.sql.engines.spark_values import (
    DIRECTIONS,
    NULL_ORDERS,
    NoTranslation,
    Relation,
    Scope,
    Value,
    condition,
    count_of,
    expression,
    fail,
    only,
)
from logs.sql.view import LOG_VIEW, fold

#: Spark's planning cannot be interrupted. These limits keep it short.
MAX_RELATIONS: Final = 8

MAX_RECORDS: Final = 2_000

MAX_DEPTH: Final = 60


@dataclass(frozen=True, slots=True)
class _Query:
    """A query: its text, and the names and types of its columns ``c0``, ``c1``, … ."""

    sql: str
    columns: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Translation:
    """A statement for Spark, and the DuckDB types of its columns. It reads the view ``proxy_logs``."""

    sql: str
    types: tuple[str, ...]
    relations: int


def translate(tree: dict[str, Any]) -> Translation:
    """Translate the parse tree of a statement that `logs.sql.guard` has checked.

    Raises:
        NoTranslation: it may mean something else in Spark, or is too large.
    """
    _check_size(tree)
    translator = _Translator()
    query = translator.query(tree["node"], {})
    return Translation(query.sql, tuple(type_ for _, type_ in query.columns), translator.relations)


def _check_size(tree: dict[str, Any]) -> None:
    """Refuse a tree with too many or too deep records. A level of SQL is several levels of the tree."""
    pending: list[tuple[Any, int]] = [(tree, 0)]
    records = 0
    while pending:
        value, depth = pending.pop()
        records += isinstance(value, dict)
        if records > MAX_RECORDS or depth > MAX_DEPTH:
            raise NoTranslation("a statement of this size")
        children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        pending.extend((child, depth + 1) for child in children)


@dataclass(frozen=True, slots=True)
class _Cte:
    query: dict[str, Any]
    aliases: tuple[str, ...]
    scope: Mapping[str, _Cte]


@dataclass(slots=True)
class _Translator:
    relations: int = 0
    _read_ctes: set[int] = field(default_factory=set)

    # Queries ---------------------------------------------------------------------------------------

    def query(self, node: dict[str, Any], ctes: Mapping[str, _Cte]) -> _Query:
        for entry in node.get("cte_map", {}).get("map", ()):
            value = entry["value"]
            only(value, "query", "aliases", "materialized")
            cte = _Cte(value["query"]["node"], tuple(value.get("aliases", ())), ctes)
            ctes = {**ctes, fold(entry["key"]): cte}
        if node["type"] != "SELECT_NODE":
            raise NoTranslation(node["type"])
        return self._select(node, ctes)

    def _select(self, node: dict[str, Any], ctes: Mapping[str, _Cte]) -> _Query:
        only(
            node, "modifiers", "cte_map", "select_list", "from_table", "where_clause", "group_expressions",
            "group_sets", "aggregate_handling", "having",
        )  # fmt: skip
        source, relations = self._table(node["from_table"], ctes)
        scope = Scope(relations)
        selected: list[tuple[str, Value]] = []
        aliases: dict[str, Value] = {}
        for record in node["select_list"]:
            columns_of_record = self._selected(record, scope)
            selected += columns_of_record
            if record.get("alias"):
                aliases[fold(record["alias"])] = columns_of_record[0][1]
        named = Scope(relations, aliases)
        text = f" FROM {source}" if source else ""
        if "where_clause" in node:
            text += f" WHERE {condition(node['where_clause'], scope, what='WHERE').sql}"
        groups = self._groups(node, named, [value for _, value in selected])
        if groups:
            text += f" GROUP BY {', '.join(dict.fromkeys(group.sql for group in groups))}"
        if "having" in node:
            having = expression(node["having"], named)
            if having.type != "BOOLEAN" or having.is_window:
                raise NoTranslation("HAVING")
            text += f" HAVING {having.sql}"
        values = [value for _, value in selected]
        sql = self._ordered(values, text, _Modifiers.of(node.get("modifiers", ())), named)
        return _Query(sql, tuple((name, value.type) for name, value in selected))

    def _ordered(self, selected: Sequence[Value], text: str, modifiers: _Modifiers, scope: Scope) -> str:
        """Return the statement that selects these values from ``text``, in order, and cuts the rows."""
        outputs = [f"{value.sql} AS c{i}" for i, value in enumerate(selected)]
        names = [f"c{i}" for i in range(len(selected))]
        place = {value.sql: f"c{i}" for i, value in reversed(list(enumerate(selected)))}
        keys = self._order_keys(modifiers.orders, scope, selected)
        hidden = dict.fromkeys(key for key, _ in keys if key not in place)
        if modifiers.is_distinct and hidden:
            raise NoTranslation("DISTINCT with ORDER BY of another expression")
        for number, key in enumerate(hidden):
            place[key] = f"o{number}"
            outputs.append(f"{key} AS {place[key]}")
        sql = f"SELECT {'DISTINCT ' if modifiers.is_distinct else ''}{', '.join(outputs)}{text}"
        if keys:
            order = ", ".join(f"{place[key]} {direction}" for key, direction in keys)
            sql = f"SELECT {', '.join(names)} FROM ({sql}) ORDER BY {order}"  # noqa: S608 - no part is text of the query
        return sql + modifiers.limit

    def _selected(self, record: dict[str, Any], scope: Scope) -> list[tuple[str, Value]]:
        if record["class"] == "STAR":
            only(record, "relation_name")
            return scope.all_columns(record.get("relation_name"))
        value = expression(record, scope)
        if value.type == "NULL":
            raise fail("NULL without a type", record)
        name = record.get("alias") or (record["column_names"][-1] if record["class"] == "COLUMN_REF" else "")
        return [(name, value)]

    def _groups(self, node: dict[str, Any], scope: Scope, selected: Sequence[Value]) -> list[Value]:
        is_all = node.get("aggregate_handling") == "FORCE_AGGREGATES"
        if is_all and any(value.is_constant for value in selected):
            # DuckDB groups by it: over no rows there is no group.
            raise NoTranslation("GROUP BY ALL of a constant")
        if is_all:
            groups = [value for value in selected if not value.is_aggregate]
        else:
            records = node.get("group_expressions", [])
            # ROLLUP has several group sets, and GROUP BY () has an empty one.
            if node.get("group_sets", []) != ([list(range(len(records)))] if records else []):
                raise NoTranslation("GROUPING SETS")
            groups = [self._key(record, scope, selected) for record in records]
        if any(group.is_aggregate or group.is_window or group.is_constant for group in groups):
            raise NoTranslation("GROUP BY of a constant or of an aggregate")
        if is_all and any(value.is_aggregate and not value.is_only_aggregate for value in selected):
            raise NoTranslation("GROUP BY ALL of such an expression")
        return groups

    def _key(self, record: dict[str, Any], scope: Scope, selected: Sequence[Value]) -> Value:
        """Return an expression of GROUP BY or ORDER BY: the place of a column, or an expression."""
        if record["class"] == "CONSTANT":
            value = record["value"]
            if value["type"]["id"] != "INTEGER" or value["is_null"]:
                raise fail("a constant in GROUP BY or ORDER BY", record)
            place = int(value["value"])
            if not 1 <= place <= len(selected):
                raise fail("a place beyond the columns", record)
            return selected[place - 1]
        return expression(record, scope)

    def _order_keys(
        self, orders: Sequence[dict[str, Any]], scope: Scope, selected: Sequence[Value]
    ) -> list[tuple[str, str]]:
        keys = []
        for order in orders:
            only(order, "null_order", "expression")
            direction = DIRECTIONS[order["type"]] + NULL_ORDERS[order.get("null_order", "ORDER_DEFAULT")]
            record = order["expression"]
            if record["class"] == "STAR":
                only(record, "columns")
                values = list(selected)
            else:
                values = [self._key(record, scope, selected)]
            keys += [(value.sql, direction) for value in values if not value.is_constant]
        return keys

    # Tables ----------------------------------------------------------------------------------------

    def _table(self, table: dict[str, Any], ctes: Mapping[str, _Cte]) -> tuple[str, tuple[Relation, ...]]:
        """Return the text of a FROM clause and its relations, from left to right."""
        match table["type"]:
            case "EMPTY":
                only(table)
                return "", ()
            case "BASE_TABLE":
                only(table, "table_name")
                return self._named_table(table, ctes)
            case "SUBQUERY":
                only(table, "subquery", "column_name_alias")
                query = self.query(table["subquery"]["node"], ctes)
                return self._over(query, table.get("alias", ""), table.get("column_name_alias", ()))
            case "JOIN":
                return self._join(table, ctes)
            case other:
                raise fail(other, table)

    def _named_table(
        self, table: dict[str, Any], ctes: Mapping[str, _Cte]
    ) -> tuple[str, tuple[Relation, ...]]:
        name = fold(table["table_name"])
        alias = table.get("alias") or table["table_name"]
        if cte := ctes.get(name):
            if id(cte.query) in self._read_ctes and _may_differ(cte.query):
                raise fail("a WITH that is read twice and has LIMIT or a window", table)
            self._read_ctes.add(id(cte.query))
            return self._over(self.query(cte.query, cte.scope), alias, cte.aliases)
        if name != LOG_VIEW:
            raise fail(f"table {name}", table)
        relation = self._next_relation()
        values = [
            (column.name, Value(f"{relation}.`{column.name}`", column.type.value))
            for column in (*columns.COLUMNS, columns.DAY_COLUMN)
        ]
        return f"{LOG_VIEW} {relation}", (Relation(fold(alias), tuple(values)),)

    def _over(self, query: _Query, alias: str, renamed: Sequence[str]) -> tuple[str, tuple[Relation, ...]]:
        relation = self._next_relation()
        if len(renamed) > len(query.columns):
            raise NoTranslation("more names than columns")
        names = [*renamed, *(name for name, _ in query.columns[len(renamed) :])]
        values = tuple(
            (name, Value(f"{relation}.c{i}", type_))
            for i, (name, (_, type_)) in enumerate(zip(names, query.columns, strict=True))
        )
        return f"({query.sql}) {relation}", (Relation(fold(alias), values),)

    def _next_relation(self) -> str:
        self.relations += 1
        if self.relations > MAX_RELATIONS:
            raise NoTranslation(f"more than {MAX_RELATIONS} tables and subqueries")
        return f"r{self.relations}"

    def _join(self, table: dict[str, Any], ctes: Mapping[str, _Cte]) -> tuple[str, tuple[Relation, ...]]:
        only(table, "left", "right", "condition", "join_type", "ref_type")
        left, left_relations = self._table(table["left"], ctes)
        right, right_relations = self._table(table["right"], ctes)
        relations = (*left_relations, *right_relations)
        kind = (table.get("join_type", "INNER"), table.get("ref_type", "REGULAR"))
        if kind == ("INNER", "CROSS"):
            return f"{left} CROSS JOIN {right}", relations
        word = {("INNER", "REGULAR"): "JOIN", ("LEFT", "REGULAR"): "LEFT JOIN"}.get(kind)
        if word is None or "condition" not in table or table["right"]["type"] == "JOIN":
            raise fail(f"{' '.join(kind)} JOIN", table)
        on = condition(table["condition"], Scope(relations), what="ON")
        return f"{left} {word} {right} ON {on.sql}", relations


@dataclass(frozen=True, slots=True)
class _Modifiers:
    orders: tuple[dict[str, Any], ...]
    limit: str
    is_distinct: bool

    @classmethod
    def of(cls, modifiers: Sequence[dict[str, Any]]) -> _Modifiers:
        orders: list[dict[str, Any]] = []
        limit, is_distinct = "", False
        for modifier in modifiers:
            match modifier["type"]:
                case "ORDER_MODIFIER":
                    orders += modifier.get("orders", ())
                case "DISTINCT_MODIFIER":
                    only(modifier)
                    is_distinct = True
                case "LIMIT_MODIFIER":
                    only(modifier, "limit", "offset")
                    for name in ("limit", "offset"):
                        if name in modifier:
                            limit += f" {name.upper()} {count_of(modifier[name], what=name.upper())}"
                case other:
                    raise NoTranslation(other)
        return cls(tuple(orders), limit, is_distinct)


def _may_differ(node: Any) -> bool:
    """Return True if a query may give other rows each time: it has LIMIT or a window."""
    if isinstance(node, list):
        return any(_may_differ(entry) for entry in node)
    if not isinstance(node, dict):
        return False
    is_unsure = node.get("type") == "LIMIT_MODIFIER" or node.get("class") == "WINDOW"
    return is_unsure or any(_may_differ(value) for value in node.values())
