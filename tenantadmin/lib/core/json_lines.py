"""Say what is wrong in a JSON text, and on which line each value begins.

The dashboard's `jsonlines.js` does the same in the same words: `tests/json_faults.json` has cases for both.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Final, NoReturn

# A text without its last quote ends with its line. White space that JSON does not have, such as the no-break
# spaces of a copied text, is a word that is no value.
_TOKEN: Final = re.compile(r'"(?:[^"\\\n]|\\[^\n\r\u2028\u2029])*("?)|[{}\[\]:,]|[^ \t\r\n{}\[\]:,"]+')
_CLOSING: Final = {"{": "}", "[": "]"}


class JsonFault(ValueError):
    """What is wrong in a text, as a sentence. ``line`` (from 1) is the line at fault."""

    def __init__(self, message: str, *, line: int) -> None:
        super().__init__(message)
        self.line = line


def read_lines(text: str) -> dict[str, int]:
    """Return the line (from 1) of each value of a JSON text, by its JSON Pointer.

    For a member of an object, it is the line of its name.

    Raises:
        JsonFault: the text is not JSON, or an object in it has a name twice.
        RecursionError: the text is nested too deeply.
    """
    reader = _Reader(text)
    reader.read_all()
    return reader.lines


class _Reader:
    def __init__(self, text: str) -> None:
        self.lines: dict[str, int] = {}
        self._text = text
        self._tokens: Iterator[re.Match[str]] = _TOKEN.finditer(text)
        self._word, self._is_ended = "", False
        self._line, self._position = 1, 0
        self._before = self._word, self._line

    def read_all(self) -> None:
        self._go_on()
        self._read_value("", 1)
        self._go_on()
        if self._word:
            self._fail(f"The JSON ends before {self._word}.")

    def _go_on(self) -> None:
        """Go to the next token. After the last one, the word is empty."""
        self._before = self._word, self._line
        found = next(self._tokens, None)
        self._word, self._is_ended = ("", False) if found is None else (found[0], bool(found[1]))
        position = len(self._text) if found is None else found.start()
        self._line += self._text.count("\n", self._position, position)
        self._position = position

    def _read_value(self, pointer: str, line: int) -> None:
        self.lines[pointer] = line
        opening = self._word
        closing = _CLOSING.get(opening)
        if closing is None:
            self._read_leaf("value")
            return
        self._go_on()
        index = 0
        while self._word != closing:
            start = self._line
            path = f"{pointer}/{index}"
            index += 1
            if opening == "{":
                path = f"{pointer}/{self._read_name(pointer)}"
            self._read_value(path, start)
            self._go_on()
            if self._word == closing:
                return
            if self._word in {"", "}", "]"}:
                self._fail(f"The {closing} is missing that belongs to the {opening} of line {line}.")
            if self._word != ",":
                self._fail_missing("comma")
            self._go_on()
            if self._word == closing:
                self._fail(f"The comma before {closing} is one too many.", self._before[1])

    def _read_name(self, pointer: str) -> str:
        """Read the name of a member and its colon; return it as a token of a JSON Pointer."""
        token = str(self._read_leaf("name")).replace("~", "~0").replace("/", "~1")
        first = self.lines.get(f"{pointer}/{token}")
        if first is not None:
            where = f"line {first}" if first == self._line else f"lines {first} and {self._line}"
            self._fail(f"{self._word} is there twice, in {where}.")
        self._go_on()
        if self._word != ":":
            self._fail_missing("colon")
        self._go_on()
        return token

    def _read_leaf(self, wanted: str) -> object:
        """Return a text, a number, a boolean or null. ``wanted`` is ``value``, or ``name`` for a text."""
        word = self._word
        is_text = word.startswith('"')
        if word in {"", ",", ":", "}", "]"}:
            self._fail_missing(wanted)
        if is_text and not self._is_ended:
            self._fail(f"The quote that ends this text is missing: {word}")
        if wanted == "name" and not is_text:
            self._fail(f"A name stands in quotes, and {word} does not.")
        try:
            return json.loads(word, parse_constant=_refuse, parse_int=float)
        except ValueError:
            no_value = f"{word} is no value. A text stands in quotes."
            self._fail(f"JSON does not take all characters of {word}." if is_text else no_value)

    def _fail_missing(self, what: str) -> NoReturn:
        """Fail in the line before."""
        word, line = self._before
        self._fail(f"A {what} is missing{word and f' after {word}'}.", line)

    def _fail(self, message: str, line: int | None = None) -> NoReturn:
        raise JsonFault(message, line=self._line if line is None else line)


def _refuse(name: str) -> NoReturn:
    raise ValueError(name)
