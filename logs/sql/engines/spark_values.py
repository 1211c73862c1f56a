"""Translate names, types and expressions to Spark's SQL, if the same values are certain: part of `spark_sql`.

Imports no Django.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from logs.sql.view import fold


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

_INTEGERS: Final = ("INTEGER", "BIGINT", "HUGEINT")

SPARK_TYPES: Final[Mapping[str, str]] = {
    "BOOLEAN": "BOOLEAN",
    "INTEGER": "INT",
    "BIGINT": "BIGINT",
    "HUGEINT": "DECIMAL(38, 0)",
    "DOUBLE": "DOUBLE",
    "VARCHAR": "STRING",
}

_COMPARISONS: Final[Mapping[str, str]] = {
    "COMPARE_EQUAL": "=",
    "COMPARE_NOTEQUAL": "<>",
    "COMPARE_LESSTHAN": "<",
    "COMPARE_LESSTHANOREQUALTO": "<=",
    "COMPARE_GREATERTHAN": ">",
    "COMPARE_GREATERTHANOREQUALTO": ">=",
    "COMPARE_NOT_DISTINCT_FROM": "<=>",
}

_AGGREGATES: Final = frozenset({"count_star", "count", "sum", "min", "max"})

_RANKS: Final = frozenset({"row_number", "rank", "dense_rank"})

_TEXT_TESTS: Final[Mapping[str, str]] = {
    "contains": "contains",
    "starts_with": "startswith",
    "prefix": "startswith",
    "^@": "startswith",
    "ends_with": "endswith",
    "suffix": "endswith",
}

#: Text that a literal of Spark does not change: ``$`` would be a variable, a backslash an escape.
_PLAIN_TEXT: Final = re.compile(r"[A-Za-z0-9 _.,:;/%*?=<>()\[\]{}@#!+\"&|-]*")

_MAX_LIMIT: Final = 2**31 - 1


def expression(record: dict[str, Any], scope: Scope) -> Value:
    """Translate one expression. Raises `NoTranslation`."""
    rule = _RULES.get(record["class"])
    if rule is None:
        raise fail(record["class"], record)
    return rule(record, scope)


def condition(record: dict[str, Any], scope: Scope, *, what: str) -> Value:
    """Translate a condition on rows. Raises `NoTranslation`."""
    value = expression(record, scope)
    if value.type != "BOOLEAN" or value.is_aggregate or value.is_window:
        raise fail(f"{what} of that type", record)
    return value


def _all(records: Sequence[dict[str, Any]], scope: Scope) -> list[Value]:
    return [expression(record, scope) for record in records]


def count_of(record: dict[str, Any], *, what: str) -> int:
    """Return the constant number of ``what``, such as LIMIT. Raises `NoTranslation`."""
    value = record.get("value") if record["class"] == "CONSTANT" else None
    if value is None or value["is_null"] or value["type"]["id"] not in {"INTEGER", "BIGINT"}:
        raise fail(f"{what} of an expression", record)
    count = int(value["value"])
    if not 0 <= count <= _MAX_LIMIT:
        raise fail(f"{what} of that size", record)
    return count


def _join_values(values: Sequence[Value], sql: str, type_: str) -> Value:
    return Value(
        sql,
        type_,
        is_aggregate=any(value.is_aggregate for value in values),
        is_window=any(value.is_window for value in values),
        is_constant=all(value.is_constant for value in values),
    )


def text_literal(text: str) -> str:
    """Return a literal of Spark. Text that its parser might change is written as bytes."""
    if _PLAIN_TEXT.fullmatch(text):
        return f"'{text}'"
    return f"CAST(X'{text.encode().hex()}' AS STRING)"


def _constant(record: dict[str, Any], _scope: Scope) -> Value:
    value = record["value"]
    type_ = value["type"]["id"]
    if "type_info" in value["type"] or type_ not in {"NULL", "INTEGER", "BIGINT", "VARCHAR", "BOOLEAN"}:
        raise fail(f"a constant of type {type_}", record)
    if value["is_null"]:
        return Value("NULL", "NULL", is_constant=True)
    if type_ == "VARCHAR":
        return Value(text_literal(str(value.get("value", ""))), type_, is_constant=True)
    if type_ == "BOOLEAN":
        return Value("true" if value.get("value") else "false", type_, is_constant=True)
    number = int(value["value"])
    return Value(f"CAST({number} AS {SPARK_TYPES[type_]})", type_, is_constant=True)


def _column(record: dict[str, Any], scope: Scope) -> Value:
    return scope.find(record)


def _are_comparable(values: Sequence[Value]) -> bool:
    types = {value.type for value in values} - {"NULL"}
    return len(types) == 1 or (bool(types) and types <= set(_INTEGERS))


def _comparison(record: dict[str, Any], scope: Scope) -> Value:
    values = _all([record["left"], record["right"]], scope)
    kind = record["type"]
    if not _are_comparable(values):
        raise fail(f"a comparison of {values[0].type} with {values[1].type}", record)
    left, right = (value.sql for value in values)
    if kind == "COMPARE_DISTINCT_FROM":
        return _join_values(values, f"(NOT ({left} <=> {right}))", "BOOLEAN")
    if kind not in _COMPARISONS:
        raise fail(kind, record)
    return _join_values(values, f"({left} {_COMPARISONS[kind]} {right})", "BOOLEAN")


def _between(record: dict[str, Any], scope: Scope) -> Value:
    values = _all([record["input"], record["lower"], record["upper"]], scope)
    if not _are_comparable(values):
        raise fail("BETWEEN of several types", record)
    value, lower, upper = (value.sql for value in values)
    return _join_values(values, f"(({value} >= {lower}) AND ({value} <= {upper}))", "BOOLEAN")


def _conjunction(record: dict[str, Any], scope: Scope) -> Value:
    values = _all(record["children"], scope)
    if any(value.type != "BOOLEAN" for value in values):
        raise fail("AND or OR of another type", record)
    word = {"CONJUNCTION_AND": " AND ", "CONJUNCTION_OR": " OR "}[record["type"]]
    return _join_values(values, f"({word.join(value.sql for value in values)})", "BOOLEAN")


def _operator(record: dict[str, Any], scope: Scope) -> Value:
    values = _all(record["children"], scope)
    first = values[0]
    match record["type"]:
        case "OPERATOR_IS_NULL":
            return _join_values(values, f"({first.sql} IS NULL)", "BOOLEAN")
        case "OPERATOR_IS_NOT_NULL":
            return _join_values(values, f"({first.sql} IS NOT NULL)", "BOOLEAN")
        case "OPERATOR_NOT" if first.type == "BOOLEAN":
            return _join_values(values, f"(NOT {first.sql})", "BOOLEAN")
        case "COMPARE_IN" | "COMPARE_NOT_IN" as kind if _are_comparable(values):
            word = "IN" if kind == "COMPARE_IN" else "NOT IN"
            listed = ", ".join(value.sql for value in values[1:])
            return _join_values(values, f"({first.sql} {word} ({listed}))", "BOOLEAN")
        case "OPERATOR_COALESCE":
            type_ = _common_type(values, record)
            listed = ", ".join(_as_type(value, type_) for value in values)
            return _join_values(values, f"coalesce({listed})", type_)
        case kind:
            raise fail(kind, record)


def _common_type(values: Sequence[Value], record: dict[str, Any]) -> str:
    if not _are_comparable(values):
        raise fail("several types in one column", record)
    types = {value.type for value in values} - {"NULL"}
    return max(types, key=lambda type_: _INTEGERS.index(type_) if type_ in _INTEGERS else 0)


def _as_type(value: Value, type_: str) -> str:
    return value.sql if value.type == type_ else f"CAST({value.sql} AS {SPARK_TYPES[type_]})"


def _case(record: dict[str, Any], scope: Scope) -> Value:
    checks = [tuple(_all([check["when_expr"], check["then_expr"]], scope)) for check in record["case_checks"]]
    conditions, results = [check[0] for check in checks], [check[1] for check in checks]
    if any(condition.type != "BOOLEAN" for condition in conditions):
        raise fail("CASE of another type", record)
    other = expression(record["else_expr"], scope)
    type_ = _common_type([*results, other], record)
    parts = "".join(
        f" WHEN {condition.sql} THEN {_as_type(result, type_)}"
        for condition, result in zip(conditions, results, strict=True)
    )
    return _join_values(
        [*conditions, *results, other], f"(CASE{parts} ELSE {_as_type(other, type_)} END)", type_
    )


def _cast(record: dict[str, Any], scope: Scope) -> Value:
    target = record["cast_type"]
    type_ = target["id"]
    if "type_info" in target or record.get("try_cast") or type_ not in SPARK_TYPES:
        raise fail(f"CAST to {type_}", record)
    child = record["child"]
    if type_ == "BOOLEAN" and child["class"] == "CONSTANT" and child["value"].get("value") in {"t", "f"}:
        return Value("true" if child["value"]["value"] == "t" else "false", type_, is_constant=True)
    value = expression(child, scope)
    is_known = value.type in {type_, "NULL"} or (
        value.type in {"INTEGER", "BIGINT"} and type_ in {"INTEGER", "BIGINT", "VARCHAR"}
    )
    if not is_known:
        raise fail(f"CAST of {value.type} to {type_}", record)
    return _join_values([value], f"CAST({value.sql} AS {SPARK_TYPES[type_]})", type_)


def _function(record: dict[str, Any], scope: Scope) -> Value:
    name = fold(record["function_name"])
    if record.get("order_bys", {}).get("orders"):
        raise fail(name, record)
    if name in _AGGREGATES:
        return _aggregate(name, record, scope)
    only(record, "function_name", "schema", "children", "is_operator", "order_bys")
    values = _all(record.get("children", ()), scope)
    sql, type_ = _call(name, values, record)
    return _join_values(values, sql, type_)


def _call(name: str, values: Sequence[Value], record: dict[str, Any]) -> tuple[str, str]:
    types = [value.type for value in values]
    texts = [value.sql for value in values]
    are_texts = all(type_ == "VARCHAR" for type_ in types)
    are_integers = len(values) == 2 and all(type_ in {"INTEGER", "BIGINT"} for type_ in types)
    if name in {"+", "-", "*"} and are_integers:
        wide = max(types, key=_INTEGERS.index)
        left, right = (_as_type(value, wide) for value in values)
        return f"({left} {name} {right})", wide
    if name in {"//", "%"} and are_integers and _is_positive(record["children"][1]):
        wide = max(types, key=_INTEGERS.index)
        operator = "DIV" if name == "//" else "%"
        return f"CAST(({texts[0]} {operator} {texts[1]}) AS {SPARK_TYPES[wide]})", wide
    if name == "/" and are_integers and _is_positive(record["children"][1]):
        return f"(CAST({texts[0]} AS DOUBLE) / CAST({texts[1]} AS DOUBLE))", "DOUBLE"
    if name == "||" and are_texts and len(values) == 2:
        return f"concat({texts[0]}, {texts[1]})", "VARCHAR"
    if name in {"length", "len", "char_length", "character_length"} and are_texts and len(values) == 1:
        return f"CAST(length({texts[0]}) AS BIGINT)", "BIGINT"
    if name in _TEXT_TESTS and are_texts and len(values) == 2:
        return f"{_TEXT_TESTS[name]}({texts[0]}, {texts[1]})", "BOOLEAN"
    if name in {"~~", "!~~"} and are_texts:
        pattern = record["children"][1]
        if pattern["class"] == "CONSTANT" and "\\" not in str(pattern["value"].get("value", "")):
            word = "LIKE" if name == "~~" else "NOT LIKE"
            return f"({texts[0]} {word} {texts[1]})", "BOOLEAN"
    raise fail(f'function "{name}"' if name.isidentifier() else f'operator "{name}"', record)


def _is_positive(record: dict[str, Any]) -> bool:
    """Return True for a constant above 0: no division by zero, and no overflow by -1."""
    if record["class"] != "CONSTANT" or record["value"]["is_null"]:
        return False
    return bool(int(record["value"]["value"]) > 0)


def _aggregate(name: str, record: dict[str, Any], scope: Scope) -> Value:
    only(record, "function_name", "schema", "children", "filter", "distinct", "order_bys")
    values = _all(record.get("children", ()), scope)
    if any(value.is_aggregate or value.is_window for value in values) or len(values) > 1:
        raise fail(f'function "{name}"', record)
    distinct = "DISTINCT " if record.get("distinct") else ""
    if name == "count_star":
        sql, type_ = "count(1)", "BIGINT"
    elif not values or values[0].type == "NULL":
        raise fail(f'function "{name}"', record)
    elif name == "count":
        sql, type_ = f"count({distinct}{values[0].sql})", "BIGINT"
    elif name == "sum" and values[0].type in {"INTEGER", "BIGINT"}:
        # 19 digits, and Spark adds ten for the sum.
        sql, type_ = f"sum({distinct}CAST({values[0].sql} AS DECIMAL(20, 0)))", "HUGEINT"
    elif name in {"min", "max"} and values[0].type in {"INTEGER", "BIGINT", "VARCHAR"}:
        sql, type_ = f"{name}({values[0].sql})", values[0].type
    else:
        raise fail(f'function "{name}" of {values[0].type}', record)
    if "filter" in record:
        rows = condition(record["filter"], scope, what="FILTER")
        sql += f" FILTER (WHERE {rows.sql})"
    return Value(sql, type_, is_aggregate=True, is_only_aggregate=True)


def _window(record: dict[str, Any], scope: Scope) -> Value:
    name = fold(record["function_name"])
    only(record, "function_name", "schema", "children", "partitions", "orders", "start", "end", "offset_expr")
    frame = (record.get("start"), record.get("end"))
    if frame != ("UNBOUNDED_PRECEDING", "CURRENT_ROW_RANGE") or not record.get("orders"):
        raise fail(f'window "{name}" with this frame', record)
    children = _all(record.get("children", ()), scope)
    if name in _RANKS and not children and "offset_expr" not in record:
        call, type_ = f"{name}()", "BIGINT"
    elif name in {"lag", "lead"} and len(children) == 1 and children[0].type in SPARK_TYPES:
        what = f"the offset of {name}"
        offset = count_of(record["offset_expr"], what=what) if "offset_expr" in record else 1
        call, type_ = f"{name}({children[0].sql}, {offset})", children[0].type
    else:
        raise fail(f'window function "{name}"', record)
    partitions = _all(record.get("partitions", ()), scope)
    keys = [(expression(order["expression"], scope), order) for order in record["orders"]]
    inside = [*children, *partitions, *(key for key, _ in keys)]
    if any(value.is_constant or value.is_aggregate or value.is_window for value in inside):
        raise fail(f'window "{name}" over an aggregate or a constant', record)
    order = ", ".join(
        f"{key.sql} {DIRECTIONS[order['type']]}{NULL_ORDERS[order.get('null_order', 'ORDER_DEFAULT')]}"
        for key, order in keys
    )
    by = f"PARTITION BY {', '.join(value.sql for value in partitions)} " if partitions else ""
    cast = f"CAST({call} OVER ({by}ORDER BY {order}) AS {SPARK_TYPES[type_]})"
    return Value(cast, type_, is_window=True)


_RULES: Final[Mapping[str, Callable[[dict[str, Any], Scope], Value]]] = {
    "BETWEEN": _between,
    "CASE": _case,
    "CAST": _cast,
    "COLUMN_REF": _column,
    "COMPARISON": _comparison,
    "CONJUNCTION": _conjunction,
    "CONSTANT": _constant,
    "FUNCTION": _function,
    "OPERATOR": _operator,
    "WINDOW": _window,
}
