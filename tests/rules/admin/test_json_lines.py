"""Lines of the values of a JSON text."""

from __future__ import annotations

from rules.admin.json_lines import find_lines, line_of


def test_lines_of_a_text() -> None:
    text = '[\n  {"id": "a,]",\n   "c": {\n     "d": [1,\n 2]}},\n  {}\n]'
    assert find_lines(text) == {
        "": 0,
        "/0": 1,
        "/0/id": 1,
        "/0/c": 2,
        "/0/c/d": 3,
        "/0/c/d/0": 3,
        "/0/c/d/1": 4,
        "/1": 5,
    }
    assert line_of(find_lines(text), "/0/c/missing") == 2
    assert line_of(find_lines(text), "/7") == 0
