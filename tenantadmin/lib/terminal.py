"""Print on a terminal: text from data made safe, and how long work takes."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

#: All characters except printable ASCII. Many of them are printable, too.
_NOT_ASCII: Final = re.compile(r"[^ -~]")


@contextmanager
def timed(text: str) -> Iterator[None]:
    """Print ``text``, and each 5 seconds how long the block has run, until it ends."""
    began, ended = time.monotonic(), threading.Event()
    print(text, flush=True)  # noqa: T201

    def tick() -> None:
        while not ended.wait(5):
            print(f"  {time.monotonic() - began:.0f} s", flush=True)  # noqa: T201

    thread = threading.Thread(target=tick, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def visible(text: str) -> str:
    r"""Return ``text`` with every character that is not printable as an escape, for example ``\x1b``.

    Escaped are control characters, line ends, writing directions and lone surrogates, but not the space. The
    text cannot be restored, because a backslash is not doubled.
    """
    return _NOT_ASCII.sub(lambda match: _escape(match[0]), text)


def _escape(character: str) -> str:
    return character if character.isprintable() else character.encode("unicode_escape").decode()
