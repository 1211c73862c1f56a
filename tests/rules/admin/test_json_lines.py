"""Lines of the values of a JSON text."""

from __future__ import annotations

import pytest

from rules.admin.json_lines import FaultyText, line_of, parse_text


def test_lines_of_a_text() -> None:
    text = '[\n  {"id": "a",\n   "c": {\n     "d": [1,\n 2]}},\n  {}\n]'
    value, lines = parse_text(text)
    assert value == [{"id": "a", "c": {"d": [1, 2]}}, {}]
    assert (lines["/0/c/d"], line_of(lines, "/0/c/missing"), line_of(lines, "/7")) == (3, 2, 0)


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        (
            '[\n{"a": 1,\n"b": {"a": 1},\n"a": 2}]',
            3,
            'The text is not JSON. Line 4: "a" is there twice, in lines 2 and 4.',
        ),
        ('[{"a": 1\n\n  "b": 2}]', 0, "The text is not JSON. Line 1: A comma is missing after 1."),
        ("[" * 100_000, 0, "The text is nested too deeply."),
    ],
)
def test_a_text_that_means_nothing_or_two_things_is_refused(text: str, line: int, message: str) -> None:
    with pytest.raises(FaultyText) as refused:
        parse_text(text)
    assert (refused.value.line, str(refused.value)) == (line, message)


def test_objects_beside_each_other_may_have_the_same_names() -> None:
    text = '[{"a": {"a": 1}}, {"a": [{"a": 1}, {"a": 1}]}]'
    assert parse_text(text)[0] == [{"a": {"a": 1}}, {"a": [{"a": 1}, {"a": 1}]}]
