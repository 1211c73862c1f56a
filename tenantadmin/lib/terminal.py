"""Make text from data safe to print on a terminal."""

from __future__ import annotations

import re
from typing import Final

#: All characters except printable ASCII. Many of them are printable, too.
_NOT_ASCII: Final = re.compile(r"[^ -~]")


def visible(text: str) -> str:
    r"""Return ``text`` with every character that is not printable as an escape, for example ``\x1b``.

    Escaped are control characters, line ends, writing directions and lone surrogates, but not the space. The
    text cannot be restored, because a backslash is not doubled.
    """
    return _NOT_ASCII.sub(lambda match: _escape(match[0]), text)


def _escape(character: str) -> str:
    return character if character.isprintable() else character.encode("unicode_escape").decode()
