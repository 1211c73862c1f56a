"""What the service says while it runs. It goes on where nobody listens any more."""

from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import Buffer


class _LossyFile(io.FileIO):
    """A file that drops what cannot be written: its reader has gone, or the disk is full."""

    def write(self, data: Buffer, /) -> int:
        left = memoryview(data)
        size = left.nbytes
        try:
            # A signal may cut a write short.
            while left and (written := super().write(left)):
                left = left[written:]
        except OSError:
            pass
        return size


def go_on_unheard() -> None:
    """Make standard output and error whole lines that never fail, whatever became of their readers.

    Without a buffer beneath, so that a signal's handler may say something while a line is being written.
    """
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper):
            stream.flush()
            raw = _LossyFile(stream.fileno(), "wb", closefd=False)
            lines = io.TextIOWrapper(raw, encoding=stream.encoding, errors=stream.errors, line_buffering=True)
            setattr(sys, name, lines)
