"""Find the days that a statement can read, from its parse tree. Imports no Django.

DuckDB prunes files by ``day`` itself, but each file in the view costs it time, and a history has hundreds. A
day is left out only if a condition excludes all of its rows. If the tree does not clearly show such a
condition, all days are kept.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from logs.columns import DAY
from logs.sql.view import LOG_VIEWS, fold

if TYPE_CHECKING:
    #: Returns True if a row of the given day can meet a condition.
    DayTest = Callable[[str], bool]

_COMPARISONS: Final[dict[str, Callable[[str, str], bool]]] = {
    "COMPARE_EQUAL": operator.eq,
    "COMPARE_LESSTHAN": operator.lt,
    "COMPARE_LESSTHANOREQUALTO": operator.le,
    "COMPARE_GREATERTHAN": operator.gt,
    "COMPARE_GREATERTHANOREQUALTO": operator.ge,
}

#: Joins whose result has the rows of each side, or nulls instead. So WHERE also applies to each side's rows.
_JOIN_TYPES: Final = frozenset({"INNER", "LEFT", "RIGHT", "OUTER"})
_JOIN_KINDS: Final = frozenset({"REGULAR", "CROSS", "DEPENDENT"})


def days_read(tree: dict[str, Any], days: Sequence[str]) -> list[str]:
    """Return the days, out of ``days``, that a statement may read, in their order."""
    tests = _reference_tests(tree)
    return [day for day in days if any(test is None or test(day) for test in tests)]


def _reference_tests(tree: dict[str, Any]) -> list[DayTest | None]:
    """Return a test for each reference to the log: its rows must pass it. None means that all rows do."""
    tests: list[DayTest | None] = []
    references = 0
    pending: list[Any] = [tree]
    while pending:
        record = pending.pop()
        if isinstance(record, list):
            pending.extend(record)
        elif isinstance(record, dict):
            references += _is_log(record)
            if record.get("type") == "SELECT_NODE":
                tests.extend(_select_tests(record))
            pending.extend(record.values())
    # References that are not directly in a FROM clause, but in a PIVOT there, have no test.
    return tests + [None] * (references - len(tests))


def _select_tests(node: dict[str, Any]) -> Iterator[DayTest | None]:
    """Yield the test of each reference to the log in a FROM clause."""
    source = node.get("from_table", {})
    is_only_table = source.get("type") == "BASE_TABLE"
    for table, where_applies in _joined_tables(source, where_applies=True):
        if not _is_log(table):
            continue
        is_sample = "sample" in node or "sample" in table or "sample" in source
        if not where_applies or is_sample or "column_name_alias" in table:
            yield None
            continue
        names: set[tuple[str, ...]] = {(fold(table.get("alias") or table["table_name"]), DAY)}
        if is_only_table:
            names.add((DAY,))
        yield _test(node.get("where_clause"), names)


def _joined_tables(source: dict[str, Any], *, where_applies: bool) -> Iterator[tuple[dict[str, Any], bool]]:
    """Yield the tables of a FROM clause, each with True if the WHERE clause applies to all of its rows."""
    if source.get("type") != "JOIN":
        yield source, where_applies
        return
    where_applies = (
        where_applies
        and source.get("join_type", "INNER") in _JOIN_TYPES
        and source.get("ref_type", "REGULAR") in _JOIN_KINDS
    )
    yield from _joined_tables(source["left"], where_applies=where_applies)
    yield from _joined_tables(source["right"], where_applies=where_applies)


def _is_log(table: dict[str, Any]) -> bool:
    return table.get("type") == "BASE_TABLE" and fold(table["table_name"]) in LOG_VIEWS


def _test(condition: dict[str, Any] | None, names: set[tuple[str, ...]]) -> DayTest | None:
    """Return the test that a condition contains for ``day``, or None if it contains no clear one.

    Args:
        names: the names of the column ``day``, as the parts of its path.
    """
    if condition is None:
        return None
    match condition["class"], condition["type"]:
        case "CONJUNCTION", kind:
            parts = [_test(child, names) for child in condition["children"]]
            tests = [part for part in parts if part is not None]
            if kind == "CONJUNCTION_AND":
                return _all(tests) if tests else None
            return _any(tests) if len(tests) == len(parts) else None
        case "COMPARISON", kind if kind in _COMPARISONS:
            return _comparison(condition, names)
        case "BETWEEN", _ if _is_day(condition["input"], names):
            bounds = (
                _compare(operator.ge, _text(condition["lower"])),
                _compare(operator.le, _text(condition["upper"])),
            )
            tests = [bound for bound in bounds if bound is not None]
            return _all(tests) if tests else None
        case "OPERATOR", "COMPARE_IN" if _is_day(condition["children"][0], names):
            values = [_text(child) for child in condition["children"][1:]]
            return _membership(values)
        case "FUNCTION", _:
            return _prefix(condition, names)
        case _:
            return None


def _comparison(condition: dict[str, Any], names: set[tuple[str, ...]]) -> DayTest | None:
    compare = _COMPARISONS[condition["type"]]
    left, right = condition["left"], condition["right"]
    if _is_day(left, names):
        return _compare(compare, _text(right))
    if _is_day(right, names):
        return _compare(lambda day, text: compare(text, day), _text(left))
    return None


def _compare(compare: Callable[[str, str], bool], text: str | None) -> DayTest | None:
    return None if text is None else lambda day: compare(day, text)


def _membership(values: list[str | None]) -> DayTest | None:
    if None in values:
        return None
    allowed = set(values)
    return lambda day: day in allowed


def _prefix(call: dict[str, Any], names: set[tuple[str, ...]]) -> DayTest | None:
    """Return the test of ``day LIKE '2026-01-%'``, or of a function that compares a prefix."""
    name, children = fold(call["function_name"]), call.get("children", [])
    if len(children) != 2 or not _is_day(children[0], names):
        return None
    text = _text(children[1])
    if text is None:
        return None
    if name == "~~":
        text = text.partition("%")[0].partition("_")[0]
    elif name not in {"starts_with", "prefix", "^@"}:
        return None
    return lambda day: day.startswith(text)


def _is_day(expression: dict[str, Any], names: set[tuple[str, ...]]) -> bool:
    return (
        expression["class"] == "COLUMN_REF"
        and tuple(fold(part) for part in expression["column_names"]) in names
    )


def _text(expression: dict[str, Any]) -> str | None:
    """Return the text of a constant of type VARCHAR. For any other expression, return None."""
    if expression["class"] != "CONSTANT":
        return None
    value = expression["value"]
    if value["is_null"] or value["type"]["id"] != "VARCHAR" or "type_info" in value["type"]:
        return None
    return str(value.get("value", ""))


def _all(tests: list[DayTest]) -> DayTest:
    return lambda day: all(test(day) for test in tests)


def _any(tests: list[DayTest]) -> DayTest:
    return lambda day: any(test(day) for test in tests)
