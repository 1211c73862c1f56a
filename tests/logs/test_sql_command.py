"""``manage.py sql``: its tables, blocks, CSV and NDJSON."""

from __future__ import annotations

import contextlib
import io
import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from django.core.management import CommandError, call_command

from logs.models import QueryRun

if TYPE_CHECKING:
    from tests.factories import World

pytestmark = pytest.mark.django_db

TITLE = "chr(27) || ']0;pwned' || chr(7)"


class Terminal(io.StringIO):
    """A standard output that is a terminal."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True

    @property
    def lines(self) -> list[str]:
        """The printed lines without colours and trailing spaces."""
        plain = re.sub(r"\x1b\[[0-9;]*m", "", self.getvalue())
        return [line.rstrip() for line in plain.splitlines()]


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """A terminal of 60 columns."""
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("TERM", "xterm-256color")
    return Terminal()


def query(world: World, statement: str, form: str = "table", *, terminal: Terminal | None = None) -> None:
    with contextlib.redirect_stdout(terminal) if terminal else contextlib.nullcontext():
        call_command("sql", statement, tenant=world.tenant.pk, format=form)


def test_a_table_is_printed_and_the_query_audited(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    query(world, "SELECT * FROM (VALUES (1, '[b]x', NULL), (22, '', [1])) AS t(n, t, nothing)")

    *table, summary = capsys.readouterr().out.splitlines()
    assert table == [
        "┏━━━━━━━━━┳━━━━━━━━━┳━━━━━━━━━━━┓",
        "┃ n       ┃ t       ┃ nothing   ┃",
        "┃ INTEGER ┃ VARCHAR ┃ INTEGER[] ┃",
        "┡━━━━━━━━━╇━━━━━━━━━╇━━━━━━━━━━━┩",
        "│ 1       │ [b]x    │ NULL      │",
        "│ 22      │         │ [1]       │",
        "└─────────┴─────────┴───────────┘",
    ]
    assert re.fullmatch(r"2 rows in \d+ ms", summary)
    assert QueryRun.objects.get().email == "manage.py sql"


def test_the_number_of_rows_is_printed_in_singular_or_plural(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    query(world, "SELECT 1 AS n")
    assert re.search(r"^1 row in \d+ ms$", capsys.readouterr().out, re.MULTILINE)
    query(world, "SELECT * FROM proxy_logs")
    assert re.search(r"^0 rows in \d+ ms$", capsys.readouterr().out, re.MULTILINE)


def test_output_that_is_not_a_terminal_has_each_row_on_one_line(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    columns = ", ".join(f"repeat('x', 40) AS c{number}" for number in range(40))
    query(world, f"SELECT {columns}, 'the end' AS c40")

    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 7
    assert lines[4].count("x" * 40) == 40
    assert lines[4].endswith("│ the end │")


def test_a_table_too_wide_for_the_terminal_is_printed_as_blocks(world: World, terminal: Terminal) -> None:
    query(
        world,
        "SELECT i AS n, repeat('x', 60) AS long, NULL AS nothing, '' AS empty FROM range(2) t(i)",
        terminal=terminal,
    )

    *records, summary = terminal.lines
    assert records == [
        "── record 1",
        "n        0",
        "long     " + "x" * 60,
        "nothing  NULL",
        "empty",
        "── record 2",
        "n        1",
        "long     " + "x" * 60,
        "nothing  NULL",
        "empty",
    ]
    assert summary.startswith("2 rows in ")


def test_a_table_as_wide_as_the_terminal_is_printed_as_a_table(world: World, terminal: Terminal) -> None:
    # 60 columns: a line and a space on either side of the text.
    query(world, "SELECT repeat('x', 56) AS n", terminal=terminal)
    assert terminal.lines[4] == f"│ {'x' * 56} │"


@pytest.mark.parametrize("form", ["table", "csv", "ndjson"])
@pytest.mark.parametrize("width", [10, 100])
def test_control_characters_in_data_do_not_reach_the_terminal(
    world: World, terminal: Terminal, form: str, width: int
) -> None:
    query(
        world,
        f"""SELECT {TITLE} AS "a\x1b]0;b\x07", repeat('x', {width}) AS c, [chr(155)] AS d""",
        form,
        terminal=terminal,
    )

    shown = "\n".join(terminal.lines)
    assert not {character for character in shown if not character.isprintable()} - {"\n"}
    assert "pwned" in shown
    assert ("\\x1b]0;pwned\\x07" in shown) or ("\\u001b]0;pwned\\u0007" in shown)


def test_control_characters_in_an_error_do_not_reach_the_terminal(world: World) -> None:
    with pytest.raises(CommandError) as caught:
        query(world, f"SELECT CAST({TITLE} AS INTEGER)")
    assert "pwned" in str(caught.value)
    assert str(caught.value).isprintable()


def test_csv_and_ndjson_are_the_same_as_in_the_api(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    statement = f"SELECT {TITLE} AS t, 'a,\nb' AS u, NULL AS v"
    query(world, statement, "csv")
    assert capsys.readouterr().out == 't,u,v\r\n\x1b]0;pwned\x07,"a,\nb",\r\n'
    query(world, statement, "ndjson")
    printed = capsys.readouterr().out
    assert json.loads(printed) == {"t": "\x1b]0;pwned\x07", "u": "a,\nb", "v": None}
    assert printed.count("\n") == 1


def test_a_truncated_result_says_so(world: World, capsys: pytest.CaptureFixture[str], settings: Any) -> None:
    options = settings.SQL_OPTIONS
    settings.SQL_OPTIONS = replace(options, limits=replace(options.limits, max_rows=2))
    query(world, "SELECT * FROM range(3)", "csv")
    printed = capsys.readouterr()
    assert printed.out == "range\r\n0\r\n1\r\n"
    assert printed.err == "2 rows, truncated at the limit\n"
    query(world, "SELECT * FROM range(4)")
    assert re.search(r"^2 rows in \d+ ms, truncated at the limit$", capsys.readouterr().out, re.MULTILINE)


def test_a_refused_statement_is_one_sentence(world: World) -> None:
    with pytest.raises(CommandError, match="SELECT"):
        query(world, "DROP TABLE proxy_logs")
