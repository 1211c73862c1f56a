"""Lines of the values of a JSON text."""

from __future__ import annotations

import pytest

from rules.admin.json_lines import FaultyText, find_lines, line_of, parse_text


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


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ('[\n{"a": 1,\n"b": {"a": 1},\n"a": 2}]', 3, '"a" is there twice, in lines 2 and 4.'),
        ('{"a": {},\n"a": 2, "\\u0061": 3}', 1, '"a" is there twice, in lines 1 and 2.'),
        ('\n{"c": {"a": 1, "a": 1}, "c": 1}', 1, '"a" is there twice, in line 2.'),
        (
            '[{"a": 1\n\n  "b": 2}]',
            0,
            'The text is not JSON. Line 1: a comma is missing after [{"a": 1.',
        ),
        (
            '[\n"a,\n1]',
            1,
            "The text is not JSON. Line 2: the quote that ends a text is missing.",
        ),
        ('["a]', 0, "The text is not JSON. Line 1: the quote that ends a text is missing."),
        ('["a\tb"]', 0, "The text is not JSON. Line 1, column 4: invalid control character."),
        (
            '[{"a": 1},\n{"b": 2}\n',
            1,
            'The text is not JSON. Line 2: a closing bracket is missing after {"b": 2}.',
        ),
        ('{"a": [1\n}', 0, 'The text is not JSON. Line 1: a closing bracket is missing after {"a": [1.'),
        ("[\n1,\n,", 2, "The text is not JSON. Line 3, column 1: expecting value."),
        ("[" * 100_000, 0, "The text is nested too deeply."),
    ],
)
def test_a_text_that_means_nothing_or_two_things_is_refused(text: str, line: int, message: str) -> None:
    with pytest.raises(FaultyText) as refused:
        parse_text(text)
    assert (refused.value.line, str(refused.value)) == (line, message)


def test_objects_beside_each_other_may_have_the_same_names() -> None:
    text = '[{"a": {"a": 1}}, {"a": [{"a": 1}, {"a": 1}]}]'
    assert parse_text(text) == ([{"a": {"a": 1}}, {"a": [{"a": 1}, {"a": 1}]}], find_lines(text))
