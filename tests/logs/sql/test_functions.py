"""Every function of DuckDB is in exactly one of the guard's lists."""

from __future__ import annotations

import re

import duckdb
import pytest

from logs.sql import grammar


def _duckdb_functions(*kinds: str) -> set[str]:
    rows = duckdb.execute(
        "SELECT DISTINCT lower(function_name) FROM duckdb_functions() WHERE function_type IN"
        " (SELECT unnest($1))",
        [list(kinds)],
    ).fetchall()
    return {name for (name,) in rows}


def _refused(lists: dict[str, frozenset[str]]) -> list[str]:
    return [name for names in lists.values() for name in names]


def test_the_lists_are_for_the_installed_release() -> None:
    assert duckdb.__version__ == grammar.ENGINE_VERSION


def test_duckdb_has_no_new_kinds_of_functions() -> None:
    kinds = {kind for (kind,) in duckdb.execute("SELECT function_type FROM duckdb_functions()").fetchall()}
    # Pragmas are statements, which the guard refuses.
    assert kinds == {"scalar", "macro", "aggregate", "table", "table_macro", "pragma"}


def test_functions_that_duckdb_calls_volatile_are() -> None:
    rows = duckdb.execute(
        "SELECT DISTINCT lower(function_name) FROM duckdb_functions() WHERE stability <> 'CONSISTENT'"
    ).fetchall()
    # It has no value.
    allowed = grammar.ALLOWED_FUNCTIONS - {"error"}
    assert {name for (name,) in rows} & allowed <= grammar.VOLATILE <= allowed


def test_macros_of_volatile_functions_are_volatile() -> None:
    rows = duckdb.execute(
        "SELECT DISTINCT lower(function_name), lower(macro_definition) FROM duckdb_functions()"
        " WHERE function_type = 'macro'"
    ).fetchall()
    words = grammar.VOLATILE | grammar.TIME_KEYWORDS
    found = {name for name, text in rows if words & set(re.findall(r"\w+", text))}
    assert found & grammar.ALLOWED_FUNCTIONS <= grammar.VOLATILE
    assert "ago" in found


@pytest.mark.parametrize(
    ("kinds", "allowed", "refused"),
    [
        (
            ("scalar", "macro", "aggregate"),
            grammar.OPERATORS | grammar.FUNCTIONS,
            _refused(grammar.REFUSED_FUNCTIONS),
        ),
        (
            ("table", "table_macro"),
            grammar.ALLOWED_TABLE_FUNCTIONS,
            _refused(grammar.REFUSED_TABLE_FUNCTIONS),
        ),
    ],
    ids=["scalar", "table"],
)
def test_every_function_is_in_exactly_one_list(
    kinds: tuple[str, ...], allowed: frozenset[str], refused: list[str]
) -> None:
    assert sorted(_duckdb_functions(*kinds)) == sorted([*allowed, *refused])
