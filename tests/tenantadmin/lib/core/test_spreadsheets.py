"""CSV for machines and for people."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenantadmin.lib.core.spreadsheets import csv_bytes, harmless

_SIGNS = "=+-@\t\r＝＋－＠"


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("=1+1", "'=1+1"),
        ("  =1+1", "'  =1+1"),
        ("\n=1+1", "'\n'=1+1"),
        ("\ufeff=1+1", "'\ufeff=1+1"),
        ("＝1+1", "'＝1+1"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("-2+3+cmd|'/c calc'!A0", "'-2+3+cmd|'/c calc'!A0"),
        # Where the list separator is a semicolon
        ("x;=1+1", "x;'=1+1"),
        ("x; \u200b=1+1", "x;' \u200b=1+1"),
        ("SELECT 1\n-- why", "SELECT 1\n'-- why"),
        # No formulas
        ("", ""),
        ("SELECT a - b, c = d FROM t; SELECT 2", "SELECT a - b, c = d FROM t; SELECT 2"),
        ("a@example.org", "a@example.org"),
        ("'=1+1", "'=1+1"),
    ],
)
def test_for_people_nothing_is_a_formula(text: str, written: str) -> None:
    assert harmless(text) == written


@given(st.text(st.sampled_from("ab ;,\n\"'" + _SIGNS)))
def test_no_cell_begins_as_a_formula_by_comma_or_semicolon(text: str) -> None:
    (row,) = csv.reader(
        io.StringIO(csv_bytes([["x", text]], for_people=True, as_text=str).decode(), newline="")
    )
    for cell in (row[1], *row[1].replace("\t", ";").replace("\r", ";").replace("\n", ";").split(";")[1:]):
        assert not cell.lstrip(" ").startswith(tuple("=+-@＝＋－＠"))


@given(
    st.lists(
        st.one_of(st.none(), st.integers(), st.text(st.characters(codec="utf-8"))), min_size=2, max_size=4
    )
)
def test_for_machines_values_are_as_they_are(values: list[int | str | None]) -> None:
    written = csv_bytes([values], for_people=False, as_text=str).decode()
    (row,) = csv.reader(io.StringIO(written, newline=""))
    assert row == ["" if value is None else str(value) for value in values]


def test_a_negative_number_is_no_text() -> None:
    assert csv_bytes([[-5, "-5", None]], for_people=True, as_text=str) == b"-5,'-5,\r\n"
