"""A value of a parameter is text wherever the parameter stands, and never SQL."""

from __future__ import annotations

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logs.queries import ParameterMisplaced, ValueMissing, fill_parameters, parameters_of

CONNECTION = duckdb.connect(config={"threads": 1})

#: Characters and words that end a literal or a comment.
HOSTILE = st.lists(
    st.sampled_from(
        ["'", '"', "\\", "$$", "$a$", "--", "/*", "*/", "\n", "\r", " OR true ", "{{y}}", "E'", ";", "x", "ä"]
    ),
    min_size=1,
    max_size=8,
).map("".join)


@pytest.mark.parametrize(
    ("statement", "text"),
    [
        ("SELECT {{x}}", "{}"),
        ("SELECT '{{x}}'", "{}"),
        ("SELECT 'it''s {{ x }}-{{x}}'", "it's {}-{}"),
        ("SELECT /* ' /* \" */ ' */ '{{x}}'", "{}"),
        ("SELECT -- it's\n{{x}}", "{}"),
        ("SELECT -- it's\r{{x}}", "{}"),
        ("SELECT '{{x}}' -- {{x}}\n/* {{x}} */", "{}"),
        ("""SELECT "it's" || {{x}} FROM (SELECT '' AS "it's")""", "{}"),
        ("SELECT $$'$$ || {{x}} || $é$'$$$é$", "'{}'$$"),
        ("SELECT a$$b || '{{x}}' || a$$b FROM (SELECT '' AS a$$b)", "{}"),
        ("SELECT E'\\'' || {{x}}", "'{}"),
        ("SELECT '\\' || '{{x}}'", "\\{}"),
    ],
)
@given(value=HOSTILE)
@settings(max_examples=100, deadline=None)
def test_a_value_is_text(statement: str, text: str, value: str) -> None:
    ((result,),) = CONNECTION.execute(fill_parameters(statement, {"x": value})).fetchall()
    assert result == text.replace("{}", value)


def test_a_value_in_quotes_ends_no_literal() -> None:
    filled = fill_parameters("SELECT 1 WHERE 'a' = '{{x}}'", {"x": " ' OR true OR '' = "})
    assert CONNECTION.execute(filled).fetchall() == []


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT E'{{x}}'",
        "SELECT e'a'\n'{{x}}'",
        'SELECT "{{x}}"',
        "SELECT $${{x}}$$",
        "SELECT $a$ $$ {{x}} $a$",
    ],
)
def test_other_quotes_refuse_parameters(statement: str) -> None:
    with pytest.raises(ParameterMisplaced, match="without quotes"):
        fill_parameters(statement, {"x": "1"})


def test_parameters_have_values_and_comments_no_parameters() -> None:
    statement = "SELECT {{ day }}, '{{user}}', {{day}} -- {{other}}\n/* {{other}} */"
    assert parameters_of(statement) == ["day", "user"]
    with pytest.raises(ValueMissing, match="Give a value for user"):
        fill_parameters(statement, {"day": "1", "user": ""})
    with pytest.raises(ParameterMisplaced, match="NUL"):
        fill_parameters("SELECT '{{x}}'", {"x": "\0"})


@given(
    statement=st.lists(HOSTILE | st.sampled_from(["{{x}}", "SELECT", "{", "}}"]), max_size=6).map(" ".join)
)
def test_a_statement_without_values_stays(statement: str) -> None:
    if parameters_of(statement):
        return
    assert fill_parameters(statement, {}) == statement
