"""Store texts that are too large for memory, and read them in another order."""

from __future__ import annotations

from tempfile import TemporaryFile
from typing import TYPE_CHECKING, BinaryIO, Final, Self

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Iterator

    from analytics.summaries.grouping import Array

#: The bytes to keep in memory. Further texts go to a temporary file.
_MEMORY_BYTES: Final = 4 << 20
#: The maximum number and bytes of texts to read at a time. A longer text is read alone.
_BATCH_TEXTS: Final = 2048
_BATCH_BYTES: Final = 4 << 20


class TextFile:
    """Texts by key. First add all texts, then read them. Keys are binary and unique.

    Raises:
        OSError: the disk failed.
    """

    def __init__(self) -> None:
        self._file: BinaryIO | None = None
        self._keys: list[Array] = []
        self._in_memory: list[Array] = []
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
        self._in_memory.append(texts)
        self._bytes += texts.nbytes
        if self._bytes > _MEMORY_BYTES:
            self._write()

    def _write(self) -> None:
        """Write the texts in memory to the file."""
        if self._file is None:
            self._file = TemporaryFile()  # noqa: SIM115  # `__exit__` closes it
        for texts in self._in_memory:
            self._lengths.append(pc.binary_length(texts).cast(pa.int64()))
            # Join the texts to write one buffer. Writing each text would copy it.
            (joined,) = pc.binary_join(pa.ListArray.from_arrays([0, len(texts)], texts), "")
            self._file.write(joined.as_buffer())
        self._in_memory.clear()

    def read(self, keys: Array) -> Iterator[Array]:
        """Yield the texts of ``keys``, in order, a batch at a time."""
        if not self._keys:
            return
        indexes = pc.index_in(keys, value_set=pa.concat_arrays(self._keys))
        if self._file is None:
            yield pa.concat_arrays(self._in_memory).take(indexes)
        else:
            yield from self._read(self._file, indexes)

    def _read(self, file: BinaryIO, indexes: Array) -> Iterator[Array]:
        lengths = pa.concat_arrays(self._lengths)
        starts = pc.subtract(pc.cumulative_sum(lengths), lengths).take(indexes).to_pylist()
        texts: list[bytes] = []
        size = 0
        for start, length in zip(starts, lengths.take(indexes).to_pylist(), strict=True):
            if texts and (len(texts) == _BATCH_TEXTS or size + length > _BATCH_BYTES):
                yield pa.array(texts, pa.binary()).cast(pa.string())
                texts, size = [], 0
            file.seek(start)
            texts.append(file.read(length))
            size += length
        if texts:
            yield pa.array(texts, pa.binary()).cast(pa.string())
