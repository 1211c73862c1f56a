"""The compiled SQL is true for exactly the rows that the evaluator matches."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rules.conditions import CONDITION_KEYS, Kind, compile_sql, matches, parse_conditions, read_request
from rules.conditions.patterns import compile_regex, fold_case, fold_case_sql
from rules.conditions.sql import quote_text
from tests.rules.conditions.strategies import conditions, rows

_ARROW: dict[Kind, pa.DataType] = {Kind.BOOL: pa.bool_(), Kind.NUMBER: pa.int32()}
SCHEMA = pa.schema([(name, _ARROW.get(key.kind, pa.string())) for name, key in CONDITION_KEYS.items()])


@pytest.fixture(scope="module")
def engine() -> Iterator[duckdb.DuckDBPyConnection]:
    """A DuckDB without files and extensions, locked like in a query process."""
    with duckdb.connect(":memory:", config={"autoload_known_extensions": "false"}) as connection:
        connection.execute("SET enable_external_access = false")
        connection.execute("SET threads = 1")
        connection.execute("SET lock_configuration = true")
        yield connection


def select(
    engine: duckdb.DuckDBPyConnection, expressions: list[str], entries: list[dict[str, Any]]
) -> list[Any]:
    engine.register("proxy_logs", pa.Table.from_pylist(entries, schema=SCHEMA))
    columns = ", ".join(expressions)
    return engine.execute(f"SELECT {columns} FROM proxy_logs").fetchall()


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(documents=st.lists(conditions, min_size=1, max_size=4), entries=st.lists(rows, min_size=1, max_size=6))
def test_evaluator_and_sql_agree(
    engine: duckdb.DuckDBPyConnection, documents: list[dict[str, Any]], entries: list[dict[str, Any]]
) -> None:
    answers = select(engine, [compile_sql(document) for document in documents], entries)

    expected = [
        tuple(matches(parse_conditions(document), read_request(entry)) for document in documents)
        for entry in entries
    ]
    assert answers == expected


ENTRY: dict[str, Any] = dict.fromkeys(CONDITION_KEYS) | {
    "statementType": "SELECT",
    "userName": "Ann's",
    "tableCount": 2,
    "isReadOnly": True,
    "tables": json.dumps(["sales.orders", "hr.people"]),
    "clientIp": "10.1.2.3",
}


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ({}, True),
        ({"any": []}, False),
        ({"all": []}, True),
        ({"userName": "Ann's"}, True),
        ({"userName": {"eq": "ANN'S", "ignoreCase": True}}, True),
        ({"userName": {"regex": "^a", "ignoreCase": True}}, True),
        ({"userAgent": "curl"}, False),
        ({"userAgent": {"ne": "curl"}}, True),
        ({"userAgent": {"notIn": ["curl"]}}, True),
        ({"not": {"userAgent": "curl"}}, True),
        ({"not": {"userAgent": {"ne": "curl"}}}, False),
        ({"userAgent": {"exists": False}}, True),
        ({"userName": {"in": []}}, False),
        ({"userName": {"notIn": []}}, True),
        ({"tableCount": {"gt": 1.5, "lt": 2.5}}, True),
        ({"tableCount": {"gt": 2}}, False),
        ({"tableCount": {"gte": 2, "lte": 2}}, True),
        ({"tableCount": {"gte": 1.5}}, True),
        ({"tableCount": {"lt": 2}}, False),
        ({"tableCount": {"lte": 1.5}}, False),
        ({"clientIp": {"cidr": []}}, False),
        ({"tableCount": {"in": [2.5, 2.0]}}, True),
        ({"tables": {"containsAny": ["hr.*"]}}, True),
        ({"tables": {"containsAll": ["hr.*", "sales.*"]}}, True),
        ({"tables": {"containsAll": ["hr.*", "ops.*"]}}, False),
        ({"tables": {"containsAny": ["SALES.*"], "ignoreCase": True}}, True),
        ({"tables": "hr.people"}, False),
        ({"clientIp": {"cidr": "10.0.0.0/8"}}, True),
        ({"clientIp": {"cidr": ["192.168.0.0/16", "::/0"]}}, False),
        ({"clientIp": {"cidr": "::ffff:10.0.0.0/104"}}, True),
    ],
)
def test_sql_and_evaluator_give_the_expected_result(
    engine: duckdb.DuckDBPyConnection, document: dict[str, Any], expected: bool
) -> None:
    assert_result(engine, document, ENTRY, expected=expected)


def assert_result(
    engine: duckdb.DuckDBPyConnection, document: dict[str, Any], entry: dict[str, Any], *, expected: bool
) -> None:
    assert select(engine, [compile_sql(document)], [entry]) == [(expected,)]
    assert matches(parse_conditions(document), read_request(entry)) is expected


CHARACTERS = [chr(code) for code in range(1, 0x110000) if not 0xD800 <= code <= 0xDFFF]


@pytest.mark.slow
def test_fold_case_is_the_same_in_sql(engine: duckdb.DuckDBPyConnection) -> None:
    engine.register("characters", pa.table({"c": CHARACTERS}))

    folded = [row[0] for row in engine.execute(f"SELECT {fold_case_sql('c')} FROM characters").fetchall()]

    assert folded == [fold_case(character) for character in CHARACTERS]


@given(text=st.text(st.sampled_from("İiIıẞßΣςσſsK\u0345é1")))
def test_texts_fold_character_by_character(engine: duckdb.DuckDBPyConnection, text: str) -> None:
    folded = "".join(map(fold_case, text))

    assert fold_case(text) == folded
    assert engine.execute(f"SELECT {fold_case_sql('?1')}", [text]).fetchall() == [(folded,)]


@pytest.mark.slow
def test_regexes_that_ignore_case_fold_in_the_same_way(engine: duckdb.DuckDBPyConnection) -> None:
    groups = defaultdict[str, str](str)
    for character in CHARACTERS:
        groups[fold_case(character)] += character
    folding = [group for group in groups.values() if len(group) > 1]
    others = "".join(group for group in groups.values() if len(group) == 1)
    letters = "".join(folding)
    engine.register("folding", pa.table({"letters": folding}))

    found = engine.execute(
        "SELECT array_to_string(regexp_extract_all(?, letters[1], 0, 'i'), '') FROM folding", [letters]
    ).fetchall()

    assert [group for (group,) in found] == folding
    for group in folding:
        assert compile_regex(f"^{group[0]}+$", ignore_case=True).is_found_in(group)
    assert not compile_regex(f"[{letters}]", ignore_case=True).is_found_in(others)


@pytest.mark.parametrize(
    ("value", "operator", "operand", "expected"),
    [
        ("İ", "endsWith", "i", False),
        ("i", "endsWith", "İ", False),
        ("İ", "eq", "İ", True),
        ("İl", "eq", "İL", True),
        ("ı", "eq", "I", False),
        ("ı", "eq", "i", False),
        ("ẞ", "eq", "ß", True),
        ("ß", "eq", "ss", False),
        ("ΟΔΟΣ", "eq", "οδος", True),
        ("οδοσ", "endsWith", "Σ", True),
        ("\u212a", "eq", "k", True),
        ("ſ", "startsWith", "S", True),
        ("µ", "in", ["Μ"], True),
        ("ᾈ", "eq", "ᾀ", True),
        ("Ǆ", "contains", "ǅ", True),
        ("ŉ", "contains", "n", False),
        ("ﬀ", "eq", "ff", False),
    ],
)
@pytest.mark.parametrize("as_table", [False, True])
def test_ignore_case_is_simple_case_folding(
    engine: duckdb.DuckDBPyConnection,
    value: str,
    operator: str,
    operand: object,
    expected: bool,
    as_table: bool,
) -> None:
    entry, key = (
        ({"tables": json.dumps([value])}, "tables") if as_table else ({"userName": value}, "userName")
    )
    if as_table and operator not in {"eq", "in"}:
        globs = {"endsWith": f"*{operand}", "startsWith": f"{operand}*", "contains": f"*{operand}*"}
        operator, operand = "containsAny", [globs[operator]]
    document = {key: {operator: operand, "ignoreCase": True}}
    assert_result(engine, document, entry, expected=expected)


def test_quotes_in_a_literal_are_escaped(engine: duckdb.DuckDBPyConnection) -> None:
    text = "'; DROP TABLE x; --\\' \" $$ \n\x01"
    assert engine.execute(f"SELECT {quote_text(text)}").fetchall() == [(text,)]


def test_nul_is_refused_in_a_literal() -> None:
    with pytest.raises(ValueError, match="cannot contain NUL"):
        quote_text("a\0b")
