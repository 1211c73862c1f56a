"""Texts that come in one order and go in another, more than memory should hold."""

from __future__ import annotations

from tempfile import TemporaryFile
from typing import TYPE_CHECKING, BinaryIO, Final, Self

import pyarrow as pa

from tenantadmin.arrow import pc

if TYPE_CHECKING:
    from collections.abc import Iterator

    from analytics.summaries.grouping import Array

#: Bytes that are held in memory; more are written to a file without a name.
_HELD: Final = 4 << 20
#: Texts, and bytes of them, that are read at a time; one that is longer is read alone.
_READ: Final = 2048
_READ_BYTES: Final = 4 << 20


class TextFile:
    """Texts by key. All are added, then read; keys are binary and each comes once.

    Raises:
        OSError: the disk failed.
    """

    def __init__(self) -> None:
        self._file: BinaryIO | None = None
        self._keys: list[Array] = []
        self._held: list[Array] = []
        self._bytes = 0
        self._lengths: list[Array] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def add(self, keys: Array, texts: Array) -> None:
        """Add the text of each key."""
        if not len(texts):
            return
        self._keys.append(keys)
        self._held.append(texts)
        self._bytes += texts.nbytes
        if self._bytes > _HELD:
            self._write()

    def _write(self) -> None:
        """Write what is held."""
        if self._file is None:
            self._file = TemporaryFile()  # noqa: SIM115  # closed with this
        for texts in self._held:
            self._lengths.append(pc.binary_length(texts).cast(pa.int64()))
            # One text, and thus in one piece, without copies of each.
            (whole,) = pc.binary_join(pa.ListArray.from_arrays([0, len(texts)], texts), "")
            self._file.write(whole.as_buffer())
        self._held.clear()

    def read(self, keys: Array) -> Iterator[Array]:
        """The text of each of ``keys``, in order, some at a time."""
        if not self._keys:
            return
        places = pc.index_in(keys, value_set=pa.concat_arrays(self._keys))
        if self._file is None:
            yield pa.concat_arrays(self._held).take(places)
        else:
            yield from self._read(self._file, places)

    def _read(self, file: BinaryIO, places: Array) -> Iterator[Array]:
        lengths = pa.concat_arrays(self._lengths)
        starts = pc.subtract(pc.cumulative_sum(lengths), lengths).take(places).to_pylist()
        texts: list[bytes] = []
        held = 0
        for start, length in zip(starts, lengths.take(places).to_pylist(), strict=True):
            if texts and (len(texts) == _READ or held + length > _READ_BYTES):
                yield pa.array(texts, pa.binary()).cast(pa.string())
                texts, held = [], 0
            file.seek(start)
            texts.append(file.read(length))
            held += length
        if texts:
            yield pa.array(texts, pa.binary()).cast(pa.string())
