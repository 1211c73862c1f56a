"""Compile conditions to a DuckDB expression over the columns of ``proxy_logs``.

An address is converted to a text that sorts like its number: ``4`` and 8 hexadecimal digits for IPv4, ``6``
and 32 digits for IPv6. Text that is not an address becomes null. A network is a ``BETWEEN`` of two of these
texts.

The expression is true if `evaluate.matches` returns True for the row, else false, and never null. It uses no
extensions, macros or functions of our own, so query processes can run it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from ipaddress import IPv4Network
from typing import Final

import re2

from rules.conditions.evaluate import fold_operand
from rules.conditions.keys import Kind, Operator
from rules.conditions.model import All, AnyOf, Condition, Not, Scalar, Test, parse_conditions
from rules.conditions.patterns import fold_case_sql, parse_network


def quote_text(text: str) -> str:
    """Return a text as a SQL literal. In DuckDB, only quotes need escaping.

    Raises:
        ValueError: the text contains NUL, where DuckDB would stop reading.
    """
    if "\0" in text:
        raise ValueError("a SQL literal cannot contain NUL")
    return "'" + text.replace("'", "''") + "'"


_OCTET: Final = "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"

_IPV4: Final = rf"{_OCTET}(\.{_OCTET}){{3}}"

_GROUP: Final = "[0-9a-f]{1,4}"

_GROUPS: Final = f"({_GROUP}(:{_GROUP})*)?"

_IPV6: Final = f"({_GROUP}:){{7}}{_GROUP}|{_GROUPS}::{_GROUPS}"

_MAPPED_PREFIX: Final = "0" * 20 + "ffff"


def compile_network(column: str, network: str) -> str:
    """Return SQL for "the column is an address in the network". It is null if the text is not an address."""
    parsed = parse_network(network)
    width, version = (8, "4") if isinstance(parsed, IPv4Network) else (32, "6")
    first = f"{version}{int(parsed.network_address):0{width}x}"
    last = f"{version}{int(parsed.broadcast_address):0{width}x}"
    return f"({_sortable_address(column)} BETWEEN {quote_text(first)} AND {quote_text(last)})"


def _let(name: str, value: str, result: str) -> str:
    """Return SQL for ``result`` in which ``name`` is ``value``, which is evaluated only once."""
    return f"list_transform([{value}], lambda {name}: {result})[1]"


def _octet(address: str, position: int) -> str:
    return f"CAST(split_part({address}, '.', {position}) AS INTEGER)"


def _groups_of(side: str) -> str:
    return f"CASE WHEN {side} = '' THEN [] ELSE string_split({side}, ':') END"


def _padded(groups: str) -> str:
    return f"array_to_string(list_transform({groups}, lambda g: lpad(g, 4, '0')), '')"


def _sortable_address(column: str) -> str:
    octets = ", ".join(_octet("a", position) for position in range(1, 5))
    return _let(
        "a",
        f"lower({column})",
        f"CASE WHEN regexp_full_match(a, {quote_text(_IPV4)}) "
        f"THEN printf('4%02x%02x%02x%02x', {octets}) "
        f"WHEN contains(a, ':') THEN {_sortable_ipv6('a')} END",
    )


def _sortable_ipv6(address: str) -> str:
    # Replace an IPv4 address at the end by its two groups, then replace "::" by zeros.
    tail = "regexp_extract(t, '[0-9.]+$')"
    high = f"{_octet('q', 1)} * 256 + {_octet('q', 2)}"
    low = f"{_octet('q', 3)} * 256 + {_octet('q', 4)}"
    two_groups = _let("q", tail, f"printf('%x:%x', {high}, {low})")
    in_groups = _let(
        "t",
        address,
        f"CASE WHEN regexp_full_match(t, {quote_text('[0-9a-f:]*:' + _IPV4)}) "
        f"THEN regexp_extract(t, '^[0-9a-f:]*:') || {two_groups} ELSE t END",
    )
    zeros = "repeat('0000', 8 - len(h) - len(r))"
    filled = _let(
        "h",
        _groups_of("split_part(b, '::', 1)"),
        _let(
            "r",
            _groups_of("split_part(b, '::', 2)"),
            "CASE WHEN contains(b, '::') = (len(h) + len(r) < 8) AND len(h) + len(r) <= 8 "
            f"THEN {_padded('h')} || {zeros} || {_padded('r')} END",
        ),
    )
    digits = f"CASE WHEN regexp_full_match(b, {quote_text(_IPV6)}) THEN {filled} END"
    sortable = f"CASE WHEN starts_with(x, '{_MAPPED_PREFIX}') THEN '4' || x[25:] ELSE '6' || x END"
    return _let("b", in_groups, _let("x", digits, sortable))


def compile_sql(conditions: Mapping[str, object]) -> str:
    """Compile a rule's ``conditions`` object.

    Raises:
        rules.conditions.InvalidConditions: the conditions have not passed lint.
    """
    return compile_condition(parse_conditions(conditions))


def compile_condition(condition: Condition) -> str:
    """Compile a condition from `parse_conditions`."""
    match condition:
        case Test():
            return _compile_test(condition)
        case All():
            return _join(" AND ", condition.parts, empty="true")
        case AnyOf():
            return _join(" OR ", condition.parts, empty="false")
        case Not():
            return f"(NOT {compile_condition(condition.part)})"


def _join(word: str, parts: tuple[Condition, ...], *, empty: str) -> str:
    compiled = [compile_condition(part) for part in parts]
    return f"({word.join(compiled)})" if compiled else empty


def _compile_test(test: Test) -> str:
    if test.operator is Operator.EXISTS:
        subject = _TABLE_NAMES if test.key.kind is Kind.TABLES else _column(test)
        return f"({subject} IS {'NOT ' if test.operand else ''}NULL)"
    if test.operator in {Operator.NE, Operator.NOT_IN}:
        opposite = Operator.EQ if test.operator is Operator.NE else Operator.IN
        return f"(NOT {_compile_test(Test(test.key, opposite, test.operand, test.ignore_case))})"
    if test.ignore_case:
        test = fold_operand(test)
    match test.key.kind:
        case Kind.TABLES:
            expression = _compile_tables(test)
        case Kind.NUMBER:
            expression = _compile_number(test)
        case Kind.BOOL:
            expression = _compile_equality(_column(test), [str(value).lower() for value in test.operands])
        case Kind.TEXT | Kind.IP:
            expression = _compile_text(test)
    return expression if expression in {"true", "false"} else f"coalesce({expression}, false)"


def _column(test: Test) -> str:
    return f'"{test.key.name}"'


def _compile_equality(subject: str, literals: list[str]) -> str:
    if not literals:
        return "false"
    return f"{subject} = {literals[0]}" if len(literals) == 1 else f"{subject} IN ({', '.join(literals)})"


_TEXT_FUNCTIONS: Final = {
    Operator.CONTAINS: "contains",
    Operator.STARTS_WITH: "starts_with",
    Operator.ENDS_WITH: "ends_with",
}


def _compile_text(test: Test) -> str:
    column = _column(test)
    if test.operator is Operator.CIDR:
        return " OR ".join(compile_network(column, text) for text in test.texts) or "false"
    if test.operator is Operator.REGEX:
        flags = ", 'i'" if test.ignore_case else ""
        return f"regexp_matches({column}, {quote_text(test.text)}{flags})"
    subject = fold_case_sql(column) if test.ignore_case else column
    if (function := _TEXT_FUNCTIONS.get(test.operator)) is not None:
        return f"{function}({subject}, {quote_text(test.text)})"
    return _compile_equality(subject, [quote_text(text) for text in test.texts])


def _compile_number(test: Test) -> str:
    column = _column(test)
    numbers = [value for value in test.operands if not isinstance(value, str)]
    if test.operator in {Operator.EQ, Operator.IN}:
        return _compile_equality(column, [str(value) for value in numbers if value == math.floor(value)])
    return _compile_bound(column, test.operator, numbers[0])


def _compile_bound(column: str, operator: Operator, bound: Scalar) -> str:
    # The column has integers, so a bound with a fraction is replaced by the integer below it.
    assert not isinstance(bound, str)  # noqa: S101 - for mypy; the parser has checked it
    below = math.floor(bound)
    if operator is Operator.GT or (operator is Operator.GTE and below != bound):
        return f"{column} > {below}"
    if operator is Operator.LT and below == bound:
        return f"{column} < {below}"
    return f"{column} >= {below}" if operator is Operator.GTE else f"{column} <= {below}"


#: The names in the JSON text of ``tables``; null if it is null or not a JSON array.
_TABLE_NAMES: Final = (
    """(CASE WHEN NOT json_valid("tables") THEN NULL WHEN json_type("tables") = 'ARRAY' THEN """
    """list_transform(list_filter(json_extract("tables", '$[*]'), lambda e: json_type(e) = 'VARCHAR'), """
    """lambda e: e->>'$') END)"""
)


def _compile_tables(test: Test) -> str:
    names = _TABLE_NAMES
    if test.ignore_case:
        names = f"list_transform({names}, lambda n: {fold_case_sql('n')})"
    if test.operator in {Operator.EQ, Operator.IN}:
        return _compile_equality(f"list_distinct({names})", [f"[{quote_text(text)}]" for text in test.texts])
    globs = [_compile_glob("n", pattern) for pattern in test.texts]
    if test.operator is Operator.CONTAINS_ANY:
        return _count_names(names, " OR ".join(globs)) if globs else "false"
    return " AND ".join(_count_names(names, glob) for glob in globs) or f"{_TABLE_NAMES} IS NOT NULL"


def _count_names(names: str, condition: str) -> str:
    return f"len(list_filter({names}, lambda n: {condition})) > 0"


def _compile_glob(subject: str, pattern: str) -> str:
    head, *rest = pattern.split("*")
    if not rest:
        return f"{subject} = {quote_text(pattern)}"
    if rest == [""]:
        return f"starts_with({subject}, {quote_text(head)})"
    expression = ".*".join(re2.escape(piece) for piece in pattern.split("*"))
    return f"regexp_full_match({subject}, {quote_text(expression)}, 's')"
