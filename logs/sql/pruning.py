"""Find the days that a statement can read, from its parse tree, so that other files are not even named.

The engine prunes files by ``day`` by itself; but naming a file costs it time, and a history has hundreds.
What is left out here is left out by a condition that every row of ``proxy_logs`` must meet; where that
is not plain from the tree, all days stay. Pure.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, Final

from logs.columns import DAY
from logs.sql.names import RELATION, fold

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    #: Whether a row of that day can meet a condition.
    DayTest = Callable[[str], bool]

_COMPARISONS: Final[dict[str, Callable[[str, str], bool]]] = {
    "COMPARE_EQUAL": operator.eq,
    "COMPARE_LESSTHAN": operator.lt,
    "COMPARE_LESSTHANOREQUALTO": operator.le,
    "COMPARE_GREATERTHAN": operator.gt,
    "COMPARE_GREATERTHANOREQUALTO": operator.ge,
}

#: Joins after which WHERE sees a row of each side, or null in its place: a row that fails there is lost.
_JOIN_TYPES: Final = frozenset({"INNER", "LEFT", "RIGHT", "OUTER"})
_JOIN_KINDS: Final = frozenset({"REGULAR", "CROSS", "DEPENDENT"})


def days_read(tree: dict[str, Any], days: Sequence[str]) -> list[str]:
    """Return those of ``days`` that the statement of ``tree`` may read, in their order."""
    tests = _reference_tests(tree)
    return [day for day in days if any(test is None or test(day) for test in tests)]


def _reference_tests(tree: dict[str, Any]) -> list[DayTest | None]:
    """Return, for each reference to the log, the test that its rows must pass; None where there is none."""
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
    # What stands in no FROM clause itself, but below a PIVOT there, say, has passed no condition.
    return tests + [None] * (references - len(tests))


def _select_tests(node: dict[str, Any]) -> Iterator[DayTest | None]:
    source = node.get("from_table", {})
    alone = source.get("type") == "BASE_TABLE"
    for table, plain in _joined_tables(source, plain=True):
        if not _is_log(table):
            continue
        sampled = "sample" in node or "sample" in table or "sample" in source
        if not plain or sampled or "column_name_alias" in table:
            yield None
            continue
        names: set[tuple[str, ...]] = {(fold(table.get("alias") or table["table_name"]), DAY)}
        if alone:
            names.add((DAY,))
        yield _test(node.get("where_clause"), names)


def _joined_tables(source: dict[str, Any], *, plain: bool) -> Iterator[tuple[dict[str, Any], bool]]:
    """Yield the tables of a FROM clause, each with whether only plain joins lie above it."""
    if source.get("type") != "JOIN":
        yield source, plain
        return
    plain = (
        plain
        and source.get("join_type", "INNER") in _JOIN_TYPES
        and source.get("ref_type", "REGULAR") in _JOIN_KINDS
    )
    yield from _joined_tables(source["left"], plain=plain)
    yield from _joined_tables(source["right"], plain=plain)


def _is_log(table: dict[str, Any]) -> bool:
    return table.get("type") == "BASE_TABLE" and fold(table["table_name"]) == RELATION


def _test(condition: dict[str, Any] | None, names: set[tuple[str, ...]]) -> DayTest | None:
    """Return what the condition demands of ``day``, or None where nothing is plain."""
    if condition is None:
        return None
    match condition["class"], condition["type"]:
        case "CONJUNCTION", kind:
            parts = [_test(child, names) for child in condition["children"]]
            if kind == "CONJUNCTION_AND":
                known = [part for part in parts if part is not None]
                return _all(known) if known else None
            known = [part for part in parts if part is not None]
            return _any(known) if len(known) == len(parts) else None
        case "COMPARISON", kind if kind in _COMPARISONS:
            return _comparison(condition, names)
        case "BETWEEN", _ if _is_day(condition["input"], names):
            bounds = (
                _compare(operator.ge, _text(condition["lower"])),
                _compare(operator.le, _text(condition["upper"])),
            )
            known = [bound for bound in bounds if bound is not None]
            return _all(known) if known else None
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
    """``day LIKE '2026-01-%'`` and the functions that ask for a prefix."""
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
    """Return the text of a constant of type VARCHAR, else None."""
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
