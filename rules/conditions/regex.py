"""Compile RE2 patterns with the options that give the same results as in DuckDB, which uses RE2 too."""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache
from typing import Final

import re2

#: Maximum length of a pattern in characters.
MAX_PATTERN: Final = 2_000

#: Maximum memory of a compiled pattern in bytes. It also limits the time for compiling and matching.
_MAX_MEMORY: Final = 1 << 20


class InvalidRegex(ValueError):
    """A pattern does not compile. The message says why."""


class Regex:
    """A compiled pattern."""

    __slots__ = ("_compiled",)

    def __init__(self, compiled: re2._Regexp) -> None:
        self._compiled = compiled

    @property
    def size(self) -> int:
        """The number of instructions of the compiled program, a measure for the cost of compiling."""
        return int(self._compiled.programsize)

    def is_found_in(self, text: str) -> bool:
        """Return True if the pattern matches anywhere in the text.

        The text is searched as bytes, because ``\\C`` can match within a character.
        """
        return self._compiled.search(text.encode("utf-8", "surrogatepass")) is not None


def _make_options(*, ignore_case: bool) -> re2.Options:
    options = re2.Options()
    options.log_errors = False
    options.case_sensitive = not ignore_case
    options.max_mem = _MAX_MEMORY
    return options


#: By ``ignore_case``. Making the options takes half as long as compiling a pattern.
_OPTIONS: Final = {value: _make_options(ignore_case=value) for value in (False, True)}


#: Group 1 is there for ``\\C`` that is not quoted, group 2 is the name of a group.
_ESCAPES: Final = re.compile(r"\\Q.*?(?:\\E|\Z)|\\(C)|\\.|\(\?P<(\w+)>", re.DOTALL)


def _text_of(name: str | bytes) -> str:
    return name if isinstance(name, str) else name.decode("utf-8", "replace")


@lru_cache(maxsize=256)
def compile_regex(pattern: str, *, ignore_case: bool = False) -> Regex:
    """Compile a pattern. ``.`` does not match a newline; ``^`` and ``$`` match only at the ends of the text.

    Raises:
        InvalidRegex: the pattern is not RE2, is too large when compiled, or has a group ``(?<name>…)``, which
            DuckDB's version of RE2 does not support.
    """
    try:
        compiled = re2.compile(pattern.encode("utf-8", "surrogatepass"), _OPTIONS[ignore_case])
    except re2.error as error:
        detail = error.args[0] if error.args else "does not compile"
        raise InvalidRegex(
            detail.decode("utf-8", "replace") if isinstance(detail, bytes) else str(detail)
        ) from None
    if compiled.groupindex and "(?<" in pattern:
        raise InvalidRegex("write a named group as (?P<name>…)")
    # Other implementations of RE2 refuse all three, and a Gateway may use one of them.
    escapes = list(_ESCAPES.finditer(pattern))
    if any(escape[1] for escape in escapes):
        raise InvalidRegex(r"\C is a single byte, which other implementations of RE2 refuse; write .")
    if not "".join(map(_text_of, compiled.groupindex)).isascii():
        raise InvalidRegex("write the names of groups with ASCII letters, digits and _")
    if any(count > 1 for count in Counter(escape[2] for escape in escapes if escape[2]).values()):
        raise InvalidRegex("give each group a name of its own")
    return Regex(compiled)
