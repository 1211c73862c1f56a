"""The one normal form of names, and the one comparison, in Python and in SQL."""

from __future__ import annotations

from collections.abc import Sequence

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rules.tables.names import (
    Likeness,
    TablePattern,
    compare,
    compare_sql,
    counts_sql,
    may_be_sql,
    name_sql,
    names_sql,
    read_name,
)
from tests.rules.tables import judge

CONNECTION = duckdb.connect(config={"threads": 1})


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("hr.people", "hr.people"),
        ('"HR"."People"', "hr.people"),
        ("`hr` . `people`", "hr.people"),
        ("[hr].[people]", "hr.people"),
        (" hr.\tpeople\n", "hr.people"),
        ("db..orders", "db.public.orders"),
        ("..orders", "orders"),
        (".public.orders", "public.orders"),
        ("a...b", "a.public.public.b"),
        ('"a.b".c', "a․b.c"),
        ('"a""b"', 'a"b'),
        ("`a``b`", "a`b"),
        ("[a]]b]", "a]b"),
        ("a.b.c.d", "a.b.c.d"),
        ('"', '"'),
        ('"a.b', '"a.b'),
        ('"a"b.c', '"a"b.c'),
        ("''", "''"),
        ("", ""),
        (".", ""),
        ("ÄÖ.ſ", "äö.s"),
        ("x" * 1_000, "x" * 1_000),
    ],
)
def test_the_normal_form(text: str, name: str) -> None:
    assert read_name(text) == name
    assert in_sql(name_sql("v1"), text) == name


@pytest.mark.parametrize(
    ("text", "name"),
    [("hr.people", "prod.hr.people"), ("people", "people"), ("x.hr.people", "x.hr.people"), ("", "")],
)
def test_the_configured_database_is_added_to_a_name_with_a_schema(text: str, name: str) -> None:
    assert read_name(text, database="prod") == name
    assert in_sql(name_sql("v1", database="prod"), text) == name


@pytest.mark.parametrize(
    ("one", "other", "likeness"),
    [
        ("hr.people", '"HR"."PEOPLE"', "same"),
        ("hr.people", "prod.hr.people", "doubt"),
        ("people", "prod.hr.people", "doubt"),
        ("db..orders", "db.public.orders", "same"),
        ("orders", "public.orders", "doubt"),
        ("hr.people", "pay.people", "different"),
        ("hr.people", "shr.people", "different"),
        ("r.people", "hr.people", "different"),
        ('"x.people"', "people", "different"),
        ('"x.people"', "x.people", "different"),
        ("a.b.c.d", "b.c.d", "doubt"),
    ],
)
def test_the_comparison(one: str, other: str, likeness: str) -> None:
    first, second = read_name(one), read_name(other)
    assert compare(first, second) == compare(second, first) == likeness
    assert in_sql(compare_sql("v1", "v2"), first, second) == likeness


@pytest.mark.parametrize(
    ("pattern", "name", "likeness"),
    [
        ("hr.*", "hr.people", "same"),
        ("hr.*", "hr.x.people", "same"),
        ("hr.*", "prod.hr.people", "doubt"),
        ("hr.*", "people", "doubt"),
        ("hr.*", "sales.orders", "different"),
        ("hr.*", '"shr".people', "different"),
        ("*", "anything.at.all", "same"),
        ("*", "", "same"),
        ("prod.hr.*", "hr.people", "doubt"),
        ("prod.hr.*", "sales.orders", "different"),
        ("hr.p*", "orders", "different"),
        ("p*", '"x.people"', "different"),
        ("*.p*", "hr.people", "same"),
        ('"HR".*', "hr.people", "same"),
    ],
)
def test_a_pattern_is_compared_part_by_part_from_the_right(pattern: str, name: str, likeness: str) -> None:
    found = TablePattern.of(pattern).compare(read_name(name))
    assert found == likeness == judge.compare_pattern(pattern, name)
    assert in_sql(counts_sql([TablePattern.of(pattern)], "v1"), read_name(name)) is found.counts


def test_a_pattern_in_the_configured_database() -> None:
    pattern = TablePattern.of("hr.*", database="prod")
    names = ["hr.people", "other.hr.people", "hr.x.people", "people"]
    likenesses = [pattern.compare(read_name(name, database="prod")) for name in names]
    assert likenesses == ["same", "different", "same", "doubt"]


def test_names_of_a_json_text() -> None:
    text = r'["A.b", "a.\"B\"", 5, null, "c"]'
    assert in_sql(f"list_sort({names_sql('v1')})", text) == ["a.b", "c"]
    assert [in_sql(names_sql("v1"), text) for text in ("{", '{"a": "b"}', "5", "[]")] == [
        None,
        None,
        None,
        [],
    ]


def test_no_table_counts_without_patterns() -> None:
    assert counts_sql([], "name") == "false"


WORDS = ("hr", "HR", "people", "PEOPLE", "orders", "public", "prod", "ä", "Ä", "İ", "ſ", "a.b", 'a"b', "")
QUOTES = ("{}", "{}", '"{}"', "`{}`", "[{}]", " {} ", '"{}', "\n{}")
PARTS = st.builds(lambda word, quotes: quotes.format(word), st.sampled_from(WORDS), st.sampled_from(QUOTES))
NAMES = st.lists(PARTS, min_size=1, max_size=4).map(".".join) | st.text('ab".`[] *\n', max_size=8)
PATTERNS = NAMES | st.lists(PARTS | st.sampled_from(["*", "p*", "*r"]), min_size=1, max_size=4).map(".".join)
DATABASES = st.sampled_from(["", "prod"])


@settings(max_examples=4, deadline=None)
@given(pairs=st.lists(st.tuples(NAMES, NAMES), min_size=300, max_size=300), database=DATABASES)
def test_names_are_compared_as_the_judge_does(pairs: list[tuple[str, str]], database: str) -> None:
    read = [name_sql(column, database=database) for column in ("one", "other")]
    found = CONNECTION.execute(
        f"WITH named AS MATERIALIZED (SELECT number, {read[0]} AS one, {read[1]} AS other FROM"
        " (SELECT unnest($1) AS number, unnest($2) AS one, unnest($3) AS other)) "
        f"SELECT one, other, {compare_sql('one', 'other')}, {may_be_sql('one', 'other')} FROM"
        f" (SELECT number, {read[0]} AS one, {read[1]} AS other FROM"
        " (SELECT unnest($1) AS number, unnest($2) AS one, unnest($3) AS other)) ORDER BY number",
        [list(range(len(pairs))), *map(list, zip(*pairs, strict=True))],
    ).fetchall()
    for (one, other), row in zip(pairs, found, strict=True):
        first, second = (read_name(text, database=database) for text in (one, other))
        expected = judge.compare(judge.parse(one, database), judge.parse(other, database))
        assert (first, second, compare(first, second), expected != "different") == row
        assert compare(first, second) == expected


@settings(max_examples=10, deadline=None)
@given(pattern=PATTERNS, names=st.lists(NAMES, min_size=50, max_size=50), database=DATABASES)
def test_patterns_are_compared_as_the_judge_does(pattern: str, names: list[str], database: str) -> None:
    asked = TablePattern.of(pattern, database=database)
    known = [read_name(name, database=database) for name in names]
    in_sql = CONNECTION.execute(
        f"SELECT {counts_sql([asked], 'name')} FROM (SELECT unnest($1) AS number, unnest($2) AS name)"
        " ORDER BY number",
        [list(range(len(known))), known],
    ).fetchall()
    for written, name, (counts,) in zip(names, known, in_sql, strict=True):
        expected = Likeness(judge.compare_pattern(pattern, written, database))
        assert (asked.compare(name), counts) == (expected, expected.counts), (pattern, written)


def in_sql(expression: str, *values: str) -> object:
    columns = ", ".join(f"${number} AS v{number}" for number in range(1, len(values) + 1))
    row: Sequence[object] = CONNECTION.execute(
        f"SELECT {expression} FROM (SELECT {columns})", list(values)
    ).fetchall()[0]
    return row[0]
