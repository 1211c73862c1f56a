"""Read the result of a query up to its limits, in the query process."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa

# Imported here because pyarrow would load it later, when the process cannot read files any more.
import pyarrow.compute

from logs.sql.arrays import as_integers, elements, map_as_list, with_widest_decimals

#: Bytes added for each value, to limit a result of many small values.
_VALUE_BYTES: Final = 8


class ResultError(Exception):
    """The query cannot be answered. The message is for its author."""


def collect(
    reader: pa.RecordBatchReader, *, max_rows: int, max_bytes: int
) -> tuple[pa.Schema, list[pa.RecordBatch], bool]:
    """Read batches up to the limits. Return the schema, the batches, and whether the limits cut the result.

    The reader streams: DuckDB computes little more than what is read.

    Raises:
        ResultError: the result holds text that is not UTF-8.
    """
    batches: list[pa.RecordBatch] = []
    rows = size = 0
    truncated = has_wide_decimals = False
    for batch in reader:
        part = batch.slice(0, max_rows - rows)
        truncated = part.num_rows < batch.num_rows
        part_size = _size(part)
        if size + part_size > max_bytes:
            part = part.slice(0, _rows_within(part, max_bytes - size))
            truncated = True
        has_wide_decimals = _has_wide_decimals(part) or has_wide_decimals
        batches.append(part)
        rows += part.num_rows
        size += part_size
        if truncated:
            break
    if has_wide_decimals:
        batches = [_widen_decimals(batch) for batch in batches]
        return batches[0].schema, batches, truncated
    return reader.schema, batches, truncated


def _widen_decimals(batch: pa.RecordBatch) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [with_widest_decimals(column) for column in batch.columns], names=batch.schema.names
    )


def _has_wide_decimals(batch: pa.RecordBatch) -> bool:
    """Return True if a decimal has more digits than its type. Refuse text that is not UTF-8.

    The service checks everything else that may be wrong with a result.
    """
    is_wide = False
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        plain = as_integers(column)
        try:
            plain.validate(full=True)
        except pa.ArrowInvalid as error:
            is_wide = is_wide or "Decimal" in str(error)
            _check_text(name, with_widest_decimals(plain))
    return is_wide


def _check_text(name: str, array: pa.Array[Any]) -> None:
    try:
        array.validate(full=True)
    except pa.ArrowInvalid as error:
        if "UTF8" in str(error):
            raise ResultError(
                f'The column "{name}" holds text that is not UTF-8: \\C in a regular expression and %c in'
                " printf make single bytes. Use . and chr(…) instead, or encode(…) for a BLOB."
            ) from None
        if "Decimal" in str(error):
            raise ResultError(f'The column "{name}" holds a DECIMAL of more than 38 digits.') from None


def _size(batch: pa.RecordBatch) -> int:
    """Return the size of a batch that counts towards ``max_bytes``.

    These are the batch's bytes, 8 for each value, and each name and ENUM text as often as JSON repeats it.
    """
    names = batch.num_rows * sum(len(name.encode()) for name in batch.schema.names)
    return int(batch.nbytes) + names + sum(_extra_size(column) for column in batch.columns)


def _extra_size(array: pa.Array[Any]) -> int:
    """Return the size that is added to the bytes of an array and of the arrays nested in it."""
    if isinstance(array, pa.ExtensionArray):
        return _extra_size(array.storage)
    if isinstance(array, pa.UnionArray):
        return _extra_size_of_fields(array)
    size = _VALUE_BYTES * len(array)
    if isinstance(array, pa.MapArray):
        pairs = elements(map_as_list(array))
        return size + _VALUE_BYTES * len(pairs) + _extra_size_of_fields(pairs)
    if isinstance(array, pa.ListArray | pa.FixedSizeListArray):
        return size + _extra_size(elements(array))
    if isinstance(array, pa.StructArray):
        names = sum(len(field.name.encode()) for field in array.type)
        return size + names * (len(array) - array.null_count) + _extra_size_of_fields(array)
    if isinstance(array, pa.DictionaryArray):
        texts: Any = array.dictionary
        lengths = pyarrow.compute.binary_length(texts)
        return size + (pyarrow.compute.sum(lengths.take(array.indices)).as_py() or 0)
    return size


def _extra_size_of_fields(array: Any) -> int:
    return sum(_extra_size(array.field(index)) for index in range(array.type.num_fields))


def _rows_within(batch: pa.RecordBatch, budget: int) -> int:
    """Return how many of the first rows fit into ``budget`` bytes. Found by bisection."""
    low, high = 0, batch.num_rows
    while low < high:
        middle = (low + high + 1) // 2
        if _size(batch.slice(0, middle)) <= budget:
            low = middle
        else:
            high = middle - 1
    return low


def serialize(schema: pa.Schema, batches: list[pa.RecordBatch]) -> memoryview:
    """Return the batches as an Arrow stream."""
    # The size is counted first: a buffer that grows is copied again and again, which takes four times
    # as long.
    counted = pa.MockOutputStream()
    _write_stream(counted, schema, batches)
    buffer = pa.allocate_buffer(counted.size())
    _write_stream(pa.FixedSizeBufferWriter(buffer), schema, batches)
    return memoryview(buffer)


def _write_stream(sink: pa.NativeFile, schema: pa.Schema, batches: list[pa.RecordBatch]) -> None:
    with pa.ipc.new_stream(sink, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
