"""RE2 patterns, compiled so that the log's engine, which is RE2 too, agrees on every text."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import re2

#: Longest pattern, in characters.
MAX_PATTERN: Final = 2_000

#: Memory of one compiled pattern, in bytes. Bounds what compiling and matching may cost.
_MAX_MEMORY: Final = 1 << 20


class InvalidRegex(ValueError):
    """A pattern that does not compile; the text says why."""


class Regex:
    """A compiled pattern that is searched for in texts."""

    __slots__ = ("_compiled",)

    def __init__(self, compiled: re2._Regexp) -> None:
        self._compiled = compiled

    @property
    def size(self) -> int:
        """Instructions of the compiled program: what compiling it has cost."""
        return int(self._compiled.programsize)

    def is_found_in(self, text: str) -> bool:
        """Search the text. Bytes go in, because ``\\C`` may match in the middle of a character."""
        return self._compiled.search(text.encode("utf-8", "surrogatepass")) is not None


def _make_options(*, ignore_case: bool) -> re2.Options:
    options = re2.Options()
    options.log_errors = False
    options.case_sensitive = not ignore_case
    options.max_mem = _MAX_MEMORY
    return options


#: Made once: making them costs half as much as compiling a pattern. By whether case is ignored.
_OPTIONS: Final = {value: _make_options(ignore_case=value) for value in (False, True)}


@lru_cache(maxsize=256)
def compile_regex(pattern: str, *, ignore_case: bool = False) -> Regex:
    """Compile a pattern: RE2 syntax, ``.`` without newline, ``^`` and ``$`` at the ends of the text.

    Raises:
        InvalidRegex: the pattern is no RE2, is too large when compiled, or names a group as ``(?<name>…)``,
            which the RE2 inside the log's engine does not know.
    """
    try:
        compiled = re2.compile(pattern.encode("utf-8", "surrogatepass"), _OPTIONS[ignore_case])
    except re2.error as error:
        detail = error.args[0] if error.args else "does not compile"
        raise InvalidRegex(
            detail.decode("utf-8", "replace") if isinstance(detail, bytes) else str(detail)
        ) from None
    if compiled.groupindex and "(?<" in pattern:
        raise InvalidRegex("a named group is written (?P<name>…)")
    return Regex(compiled)
