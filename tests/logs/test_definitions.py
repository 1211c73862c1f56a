"""What the numbers count is defined once."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from hashlib import md5
from pathlib import Path

import duckdb
import pytest

from analytics.replay.count import STATUS_COUNTS
from analytics.replay.figures import UNCOUNTED
from logs import definitions
from logs.definitions import (
    BYPASSED,
    ENDED_AT,
    HIT,
    HOUR,
    MEASURED,
    MISS,
    NOT_CACHED,
    PASSED,
    REQUEST,
    SIZED,
    STATUSES,
    STORED_MISS,
    TIMED,
    WAREHOUSE_TIME,
    Statuses,
    hash_sql,
    hash_statement,
)

ROOT = Path(__file__).parents[2]
PRODUCT = ("accounts", "analytics", "bench", "logs", "rules", "scripts", "tenantadmin", "tosapp")
#: Files that name a status without counting anything.
NAMING = {
    "logs/definitions.py": "the definitions",
    "logs/columns.py": "the example of the column",
    "rules/match.py": "what the Gateway logs for each action",
    "rules/dialects/control.py": "what the Gateway logs for statements of the session",
    "analytics/replay/play.py": "what a replay gives each request",
    "analytics/history/postgresql.py": "a level of PostgreSQL's log",
    "analytics/history/tables.py": "the same",
    "analytics/demo/profile.py": "what the simulated Gateway answers",
    "analytics/demo/generate.py": "what the simulated Gateway logs",
    "bench/bench_requests.py": "a filter of one status",
    "bench/bench_soak.py": "what it sends",
    "logs/wire/messages.py": "a severity of PostgreSQL's messages",
    "scripts/duckdb_suite.py": "DuckDB's own statements",
    "tenantadmin/lib/core/log_lines.py": "a level of logging",
    "tosapp/publishing.py": "the MD5 of terms of service",
}
NAME = rf"(?:{'|'.join(STATUSES)})"
#: A status in SQL, a status as a value, and several in a sentence.
STATUS = re.compile(rf"'{NAME}'|\A{NAME}\Z|\b{NAME}(, {NAME})*( and | \+ ){NAME}\b")
#: A status in SQL in a script, where objects of JavaScript also name statuses.
CONDITION = re.compile(r"cacheStatus (=|<>|IN|NOT|IS)\b")
NUMBERS = tuple(
    map(str, (TIMED, SIZED, WAREHOUSE_TIME, MEASURED, ENDED_AT, HOUR, "md5(statement", hash_sql()))
)
ROLLED_UP = ("bypasses + passthroughs",)
#: What a file has that says one of these.
MENTIONED = re.compile(rf"{NAME}|TimeMs|responseSize|% 86400000|md5|passthroughs")


def python_texts(source: str) -> Iterator[str]:
    """Yield the texts of a module, but not its docstrings. An f-string is read without its values."""
    tree = ast.parse(source)
    documentation = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation:
            yield " ".join(node.value.split())


def find_spellings(path: str) -> Iterator[str]:
    """Yield what a file of the product says again."""
    source = (ROOT / path).read_text()
    if path in NAMING or not MENTIONED.search(source):
        return
    if path.endswith(".py"):
        texts = list(python_texts(source))
        yield from re.findall(r"(?:hashlib\.)?md5\(\S+, usedforsecurity", source)
        parts = NUMBERS if path == "analytics/numbers/tables.py" else (*NUMBERS, *ROLLED_UP)
        pattern = STATUS
    else:
        texts, parts, pattern = [" ".join(source.split())], NUMBERS, CONDITION
    for text in texts:
        yield from (found[0] for found in pattern.finditer(text))
        yield from (part for part in parts if part in text)


def is_searched(path: Path) -> bool:
    return path.suffix in {".py", ".sql", ".js"} and "migrations" not in path.parts


def product_files() -> list[str]:
    files = [
        path for name in PRODUCT for kind in ("*.py", "*.sql", "*.js") for path in (ROOT / name).rglob(kind)
    ]
    return sorted(str(path.relative_to(ROOT)) for path in files if is_searched(path))


def test_every_definition_has_one_spelling() -> None:
    """When this test was written, it found 249 second spellings in 49 files."""
    found = {path: spellings for path in product_files() if (spellings := list(find_spellings(path)))}

    assert found == {}


@pytest.mark.parametrize(
    "text",
    [
        "count(*) FILTER (cacheStatus = 'HIT')",
        "BYPASS",
        "Of `misses`: BYPASS and PASSTHROUGH.",
        "avg(responseTimeMs) FILTER (responseTimeMs > 0)",
        "WHERE\n    warehouseExecutionTimeMs >= 0",
        "md5(standardizedSql) = ''",
    ],
)
def test_a_second_spelling_is_found(text: str) -> None:
    (found,) = python_texts(f"x = {text!r}")

    assert STATUS.search(found) or any(part in found for part in NUMBERS)


def test_requests_have_parts_without_an_entry_in_two() -> None:
    parts = (HIT, STORED_MISS, BYPASSED, PASSED)

    assert sorted(REQUEST) == sorted(name for part in parts for name in part)
    assert len(set(REQUEST)) == len(REQUEST)
    assert sorted(MISS) == sorted((*STORED_MISS, *NOT_CACHED))


@pytest.mark.parametrize(
    "name", [name for name, value in vars(definitions).items() if isinstance(value, Statuses)]
)
def test_sql_and_python_agree(name: str) -> None:
    statuses: Statuses = getattr(definitions, name)
    sql = (
        f"SELECT cacheStatus, {statuses}, {statuses.of('cacheStatus')}, {statuses.not_of('cacheStatus')},"
        f" {statuses.others} FROM (SELECT unnest({[*STATUSES]} || [NULL]) AS cacheStatus)"
    )

    assert duckdb.sql(sql).fetchall() == [
        *(
            (one, one in statuses, one in statuses, one not in statuses, one not in statuses)
            for one in STATUSES
        ),
        (None, None, None, None, True),
    ]


def test_a_sentence_names_statuses() -> None:
    sentences = [Statuses(*names).text for names in ("A", "AB", "ABC")]

    assert sentences == ["A", "A and B", "A, B and C"]


def test_conditions_of_documents_are_definitions() -> None:
    condition = re.compile(r"cacheStatus (?:= '\w+'|IN \([^)]*\))")
    defined = {str(value) for value in vars(definitions).values() if isinstance(value, Statuses)}
    pages = sorted((ROOT / "docs").glob("*.md"))
    found = {text for page in pages for text in condition.findall(" ".join(page.read_text().split()))}

    assert {str(HIT), str(REQUEST)} <= found <= defined


def test_a_statement_has_one_identity() -> None:
    statement = "SELECT 'ä'\n"

    (found,) = duckdb.execute(f"SELECT {hash_sql('$1')}", [statement]).fetchall()

    assert found == (hash_statement(statement),)
    assert hash_statement(statement) == md5(statement.encode(), usedforsecurity=False).hexdigest()


def test_a_replay_counts_the_same_requests() -> None:
    others = [name for name, statuses in STATUS_COUNTS.items() if not set(statuses) <= set(REQUEST)]

    assert [re.sub(r"_e", "E", name) for name in others] == [*UNCOUNTED]
