"""What is wrong in a JSON text, in words, and the lines of its values."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenantadmin.lib.core.json_lines import JsonFault, read_lines
from tests.format_cases import JSON_FAULTS


@pytest.mark.parametrize(("text", "line", "message"), JSON_FAULTS)
def test_a_fault_is_said_in_words(text: str, line: int, message: str) -> None:
    with pytest.raises(JsonFault) as found:
        read_lines(text)
    assert (found.value.line, str(found.value)) == (line, message)


def test_each_value_has_its_line() -> None:
    text = '[\n  {"id": "a,]",\n   "c": {\n     "d/~": [1,\n 2]}},\n  {}\n]'
    assert read_lines(text) == {
        "": 1,
        "/0": 2,
        "/0/id": 2,
        "/0/c": 3,
        "/0/c/d~1~0": 4,
        "/0/c/d~1~0/0": 4,
        "/0/c/d~1~0/1": 5,
        "/1": 6,
    }


def unique(pairs: list[tuple[str, Any]]) -> None:
    if len(dict(pairs)) < len(pairs):
        raise ValueError


def refuse(name: str) -> None:
    raise ValueError(name)


@given(st.text('{}[]:,"a1.\\\n 0-', max_size=12))
def test_it_finds_a_fault_in_what_python_does_not_read_and_in_nothing_else(text: str) -> None:
    try:
        json.loads(text, parse_constant=refuse, object_pairs_hook=unique)
    except ValueError:
        with pytest.raises(JsonFault):
            read_lines(text)
    else:
        assert read_lines(text)[""] == 1
