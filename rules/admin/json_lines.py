"""Read a JSON text with the line of each value, to show findings at their place."""

from __future__ import annotations

import json
from typing import Any

from tenantadmin.lib.core.errors import ValidationFailed
from tenantadmin.lib.core.json_lines import JsonFault, read_lines


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
        lines = {pointer: line - 1 for pointer, line in read_lines(text).items()}
        return json.loads(text), lines
    except JsonFault as error:
        raise FaultyText(f"The text is not JSON. Line {error.line}: {error}", line=error.line - 1) from error
    except RecursionError as error:
        raise FaultyText("The text is nested too deeply.", line=0) from error
    except ValueError as error:  # an integer of thousands of digits
        raise FaultyText(f"The text is not JSON. {error}.", line=0) from error


def line_of(lines: dict[str, int], pointer: str) -> int:
    """Return the line (from 0) of the value at a JSON Pointer, or of the nearest value around it."""
    while pointer and pointer not in lines:
        pointer = pointer.rpartition("/")[0]
    return lines.get(pointer, 0)
