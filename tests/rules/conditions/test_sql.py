"""The compiled SQL is true for exactly the rows that the evaluator matches."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rules.conditions import CONDITION_KEYS, Kind, compile_sql, matches, parse_conditions, read_request
from rules.conditions.casefold import fold_case
from rules.conditions.literals import quote_text
from tests.rules.conditions.strategies import conditions, rows

if TYPE_CHECKING:
    from collections.abc import Iterator

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
    assert select(engine, [compile_sql(document)], [ENTRY]) == [(expected,)]
    assert matches(parse_conditions(document), read_request(ENTRY)) is expected


def test_fold_case_is_the_same_as_duckdbs_lower(engine: duckdb.DuckDBPyConnection) -> None:
    characters = [chr(code) for code in range(1, 0x110000) if not 0xD800 <= code <= 0xDFFF]
    engine.register("characters", pa.table({"c": characters}))

    lowered = [row[0] for row in engine.execute("SELECT lower(c) FROM characters").fetchall()]

    assert lowered == [fold_case(character) for character in characters]


def test_quotes_in_a_literal_are_escaped(engine: duckdb.DuckDBPyConnection) -> None:
    text = "'; DROP TABLE x; --\\' \" $$ \n\x01"
    assert engine.execute(f"SELECT {quote_text(text)}").fetchall() == [(text,)]


def test_nul_is_refused_in_a_literal() -> None:
    with pytest.raises(ValueError, match="cannot contain NUL"):
        quote_text("a\0b")
