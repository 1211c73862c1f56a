"""Read a JSON text with the line of each value, to show findings at their place."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from rules.json_text import join_pointer
from tenantadmin.lib.core.errors import ValidationFailed

if TYPE_CHECKING:
    from rules.json_text import Path

#: Tokens of valid JSON. Spaces, colons and commas are not needed.
_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]:,]|[^\s{}\[\]:,"]+', re.DOTALL)


class FaultyText(ValidationFailed):
    """A text is not JSON, or an object in it has a name twice. ``line`` (from 0) is where."""

    def __init__(self, message: str, *, line: int) -> None:
        super().__init__(message)
        self.line = line


def parse_text(text: str) -> tuple[Any, dict[str, int]]:
    """Return the value of a JSON text, and the line (from 0) of each value in it, by its JSON Pointer.

    Raises:
        FaultyText: the text is not JSON, or an object in it has a name twice.
    """
    try:
        return json.loads(text), find_lines(text)
    except json.JSONDecodeError as error:
        said, line = _say_fault(text, error)
        raise FaultyText(f"The text is not JSON. {said}.", line=line) from error
    except RecursionError as error:
        raise FaultyText("The text is nested too deeply.", line=0) from error
    except ValueError as error:  # an integer of thousands of digits
        raise FaultyText(f"The text is not JSON. {error}.", line=0) from error


def _say_fault(text: str, error: json.JSONDecodeError) -> tuple[str, int]:
    """Say what is wrong, and return the line (from 0). What is missing belongs to the line before."""
    found = text[error.pos : error.pos + 1]
    if error.msg == "Expecting ',' delimiter":
        lines = text[: error.pos].rstrip().split("\n")
        missing = "comma" if found not in {"", "]", "}"} else "closing bracket"
        said = f"Line {len(lines)}: a {missing} is missing after {lines[-1].strip()[-40:]}"
        return said, len(lines) - 1
    if error.msg == "Unterminated string starting at" or (
        error.msg == "Invalid control character at" and found in {"\r", "\n"}
    ):
        return f"Line {error.lineno}: the quote that ends a text is missing", error.lineno - 1
    fault = error.msg.replace("delimiter", "").removesuffix(" at").strip()
    said = f"Line {error.lineno}, column {error.colno}: {fault[:1].lower()}{fault[1:]}"
    return said, error.lineno - 1


def line_of(lines: dict[str, int], pointer: str) -> int:
    """Return the line (from 0) of the value at a JSON Pointer, or of the nearest value around it."""
    while pointer and pointer not in lines:
        pointer = pointer.rpartition("/")[0]
    return lines.get(pointer, 0)


def find_lines(text: str) -> dict[str, int]:
    """Return the line (from 0) of each value of a valid JSON text, by its JSON Pointer.

    For a member of an object, it is the line of its name.

    Raises:
        FaultyText: an object has a name twice.
    """
    lines = {"": 0}
    path: list[str | int] = []
    # For each open object or array: is it an object, and is its next string a name.
    open_objects: list[bool] = []
    expects_name = False
    line = position = 0
    for token in _TOKEN.finditer(text):
        line += text.count("\n", position, token.start())
        position = token.start()
        word = token.group()
        if word in "{[":
            _note(lines, path, line)
            open_objects.append(word == "{")
            path.append("" if word == "{" else 0)
            expects_name = word == "{"
        elif word in "}]":
            open_objects.pop()
            path.pop()
            expects_name = False
        elif word == ",":
            if open_objects[-1]:
                expects_name = True
            else:
                path[-1] = int(path[-1]) + 1
        elif word == ":":
            expects_name = False
        elif expects_name:
            path[-1] = json.loads(word)
            first = lines.get(join_pointer(tuple(path)))
            if first is not None:
                where = f"line {line + 1}" if first == line else f"lines {first + 1} and {line + 1}"
                raise FaultyText(f"{word} is there twice, in {where}.", line=line)
            _note(lines, path, line)
        else:
            _note(lines, path, line)
    return lines


def _note(lines: dict[str, int], path: list[str | int], line: int) -> None:
    place: Path = tuple(path)
    lines.setdefault(join_pointer(place), line)
