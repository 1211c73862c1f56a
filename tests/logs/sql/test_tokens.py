"""What the tokens of a refused statement say about it."""

from __future__ import annotations

import pytest

from logs.sql.refusals import describe_statements, find_backquote, find_word

_SELECT = "Send one SELECT, or WITH … SELECT, over proxy_logs."
_ACCEPT = "Send the SELECT alone. The header Accept chooses CSV, NDJSON, Parquet or Arrow for its result."
_VALUES = "Send the SELECT alone. Write its values into it."
_SETTINGS = f"Settings are fixed. {_SELECT}"
_PIVOT = "PIVOT day ON host"


@pytest.mark.parametrize(
    ("statement", "cure"),
    [
        ("ATTACH 'x.db'", _SELECT),
        ("COPY (FROM a) TO 'x'", _ACCEPT),
        ("EXECUTE p", _VALUES),
        ("EXPLAIN FROM a", "Send the SELECT alone."),
        ("EXPORT DATABASE 'x'", _ACCEPT),
        ("PRAGMA version", _SETTINGS),
        ("PREPARE p AS FROM a", _VALUES),
        ("RESET threads", _SETTINGS),
        ("SET threads = 1", _SETTINGS),
    ],
)
def test_the_cure_depends_on_the_first_word(statement: str, cure: str) -> None:
    verb = statement.split(maxsplit=1)[0]
    for sent in (statement, statement.lower(), f"/* ; */ ; {statement};\n;", f"-- FROM a;\n{statement}"):
        assert describe_statements(sent.encode()) == f"{verb} is not allowed. {cure}"


@pytest.mark.parametrize("verb", ["DELETE", "INSERT", "MERGE", "UPDATE"])
def test_the_word_after_with_counts(verb: str) -> None:
    statement = f"WITH a AS (FROM (SELECT 1)), b AS (VALUES (2)) {verb} INTO c FROM (TABLE d)"
    assert describe_statements(statement.encode()) == f"{verb} is not allowed. {_SELECT}"


def test_with_alone_is_named() -> None:
    assert describe_statements(b"WITH a AS (FROM b)") == f"WITH is not allowed. {_SELECT}"


@pytest.mark.parametrize(
    "statement",
    [
        f"FROM ({_PIVOT})",
        _PIVOT,
        f"PIVOT_LONGER ({_PIVOT}) ON a",
        "PIVOT_WIDER day ON host",
        f"SELECT * FROM ({_PIVOT})",
        f"UNPIVOT ({_PIVOT}) ON a",
        f"VALUES ((FROM ({_PIVOT})))",
        f"WITH a AS ({_PIVOT}) FROM a",
        f"WITH a AS ({_PIVOT}) TABLE a",
        "WITH a AS (DELETE FROM b) PIVOT a ON c",
    ],
)
def test_a_query_that_is_no_select_is_a_pivot_without_values(statement: str) -> None:
    message = "PIVOT needs its values listed: PIVOT … ON column IN ('a', 'b')."
    assert describe_statements(statement.encode()) == message


@pytest.mark.parametrize(
    ("statements", "count"), [("FROM a; FROM b", 2), (";;SET a = 1;;(SELECT 1);SELECT ';'", 3)]
)
def test_statements_are_counted(statements: str, count: int) -> None:
    assert describe_statements(statements.encode()) == f"Send one statement, not {count}."


@pytest.mark.parametrize("statement", ["", ";", "1 + (2)", "/* DROP */"])
def test_a_statement_without_words_has_no_name(statement: str) -> None:
    assert describe_statements(statement.encode()) == f"This is not allowed. {_SELECT}"


@pytest.mark.parametrize("space", "\u00a0\u2000\u2005\u200b\u202f\u205f\u2060\u3000\ufeff")
def test_a_space_of_unicode_separates_words_and_keeps_offsets(space: str) -> None:
    statement = f"{space}DROP{space}VIEW{space}`a`"
    assert describe_statements(statement.encode()) == f"DROP is not allowed. {_SELECT}"
    assert find_word(statement.encode(), "VIEW") == [len(f"{space}DROP{space}".encode())]
    assert find_backquote(statement.encode()) == len(f"{space}DROP{space}VIEW{space}".encode())


@pytest.mark.parametrize(
    ("statement", "offset"),
    [
        ("SELECT 1", None),
        ("SELECT '`', \"`\", 1 /* ` */ -- `", None),
        ("`a`", 0),
        ("SELECT 'é`', `a`", 14),
        ("SELECT 1+`a`", 9),
        ("SELECT 1+``", 9),
        ("SELECT 1 <=>`a`", 12),
        ("SELECT 1 +/*`*/ `a`", 16),
        ("SELECT 1 +--`\n`a`", 14),
        ("SELECT 1 *`a` - `b`", 10),
    ],
)
def test_the_first_backquote_outside_of_quotes_and_comments_is_found(
    statement: str, offset: int | None
) -> None:
    assert find_backquote(statement.encode()) == offset


def test_a_word_is_found_as_a_keyword_or_name_only() -> None:
    text = b"SELECT 'LIMIT', \"LIMIT\", limit_, limit /* LIMIT */ FROM a Limit 1 -- LIMIT"
    assert find_word(text, "LIMIT") == [text.index(b"limit /"), text.index(b"Limit")]
    assert find_word(text, "OFFSET") == []
