"""Text from data for a person's terminal."""

from __future__ import annotations

import re
from typing import Final

#: A first sieve: what is printable beyond ASCII passes through it.
_SUSPECT: Final = re.compile(r"[^ -~]")


def visible(text: str) -> str:
    r"""Return ``text`` with what does not show, or would drive the terminal, as its escape: ``\x1b``.

    So are line ends, directions of writing and halves of surrogate pairs; the space is not. Not reversible:
    a backslash stays single.
    """
    return _SUSPECT.sub(lambda match: _escape(match[0]), text)


def _escape(character: str) -> str:
    return character if character.isprintable() else character.encode("unicode_escape").decode()
