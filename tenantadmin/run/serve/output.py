"""Log output of `serve`. A closed pipe, a lost terminal or a full disk does not stop the service."""

from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import Buffer


class _BestEffortFile(io.FileIO):
    """A file that drops what cannot be written."""

    def write(self, data: Buffer, /) -> int:
        try:
            written = super().write(data)
        except OSError:
            written = None
        # None also where the file would block.
        return memoryview(data).nbytes if written is None else written


def ignore_write_errors() -> None:
    """Replace standard output and error by streams that write each line at once and never fail."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper):
            stream.flush()
            raw = _BestEffortFile(stream.fileno(), "wb", closefd=False)
            lines = io.TextIOWrapper(
                io.BufferedWriter(raw), encoding=stream.encoding, errors=stream.errors, line_buffering=True
            )
            setattr(sys, name, lines)
