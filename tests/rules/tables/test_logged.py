"""How the log spells the tables that a pattern means."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rules.tables.logged import LoggedNames
from rules.tables.warehouse import WarehouseTables

_PARTS = st.sampled_from(["a", "b", '"A"', "`b`", "[a]", ""])
_NAMES = st.lists(_PARTS, min_size=1, max_size=3).map(".".join)
_PATTERNS = st.one_of(_NAMES, st.sampled_from(["*", "a.*", "*.b", "b.a.*", "*a"]))


@given(
    logged=st.lists(_NAMES, unique=True, max_size=8), pattern=_PATTERNS, database=st.sampled_from(["", "b"])
)
def test_it_finds_what_a_comparison_of_all_names_finds(
    logged: list[str], pattern: str, database: str
) -> None:
    tables = WarehouseTables(database=database, logged=tuple(logged))
    meant = tables.pattern(pattern)
    expected = {text for text in logged if meant.compare(tables.read(text)).counts}
    assert set(LoggedNames(tables).find(meant)) == expected


def test_tables_with_several_spellings() -> None:
    logged = ("p.s.a", "S.A", '"p".s.a', "s.a", "q.s.b", "b", "c")
    assert LoggedNames(WarehouseTables(logged=logged)).spelled_otherwise() == [
        ("p.s.a", ['"p".s.a', "S.A", "p.s.a", "s.a"]),
        ("q.s.b", ["b", "q.s.b"]),
    ]
