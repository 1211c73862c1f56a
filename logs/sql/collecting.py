"""Read the result of a query up to its limits, in the query process.

DuckDB has values that Arrow's checks refuse (``TIME '24:00:00'``), and exports booleans of eight bits.
Imports no Django.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa

# Imported here because pyarrow would load it later, when the process cannot read files any more.
import pyarrow.compute
import pyarrow.compute as pc

#: DuckDB's infinite timestamp. Minus infinity is the same number, negated.
_INFINITE: Final = pa.scalar(2**63 - 1, pa.int64())

#: Nested types that `_convert` can rebuild. DuckDB makes no others.
_NESTED_TYPES: Final = (
    pa.types.is_struct,
    pa.types.is_list,
    pa.types.is_fixed_size_list,
    pa.types.is_map,
    pa.types.is_union,
)


def as_integers(array: Any) -> Any:
    """Return the array with times of day as integers, without a copy."""
    return _convert(array, matches=pa.types.is_time64, leaf=lambda times: times.view(pa.int64()))


def with_plain_booleans(array: Any) -> Any:
    """Return the array with all booleans of one bit."""
    return _convert(array, matches=_is_wide_boolean, leaf=lambda wide: wide.storage.cast(pa.bool_()))


def with_milliseconds(array: Any) -> Any:
    """Return the array with timestamps in seconds converted to milliseconds."""
    return _convert(array, matches=_is_in_seconds, leaf=_in_milliseconds)


def with_widest_decimals(array: Any) -> Any:
    """Return the array with decimals of 38 digits, without a copy.

    DuckDB's ``round(95::DECIMAL(2), -1)`` is 100, of a type that has two digits.
    """
    return _convert(array, matches=pa.types.is_decimal128, leaf=_widest)


def _widest(decimals: Any) -> Any:
    type_ = pa.decimal128(38, decimals.type.scale)
    return pa.Array.from_buffers(type_, len(decimals), decimals.buffers(), offset=decimals.offset)


def empty_batch(schema: pa.Schema) -> pa.RecordBatch:
    """Return a batch without rows. ``Schema.empty_table`` does not support unions."""
    return pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in schema], names=schema.names)


def map_as_list(array: Any) -> Any:
    """Return a map array, also a slice, as a list array of key-value structs, without a copy."""
    fields = [array.type.key_field, array.type.item_field]
    return _list_over(array, pa.StructArray.from_arrays([array.keys, array.items], fields=fields))


def member_codes(array: Any) -> Any:
    """Return the code of the member of each row of a union. Arrow's ``type_codes`` ignores slices."""
    if not len(array):
        # An empty array may have no buffers.
        return pa.array([], pa.int8())
    codes = array.buffers()[1]
    return pa.Array.from_buffers(pa.int8(), len(array), [None, codes.slice(array.offset)])


def elements(array: Any) -> Any:
    """Return the elements of all rows of a list array, one row after another, without a copy.

    ``flatten`` copies if there are nulls, and cannot copy every type.
    """
    if pa.types.is_fixed_size_list(array.type):
        size = array.type.list_size
        return array.values.slice(array.offset * size, len(array) * size)
    if not len(array):
        return array.values.slice(0, 0)
    start, end = array.offsets[0].as_py(), array.offsets[-1].as_py()
    return array.values.slice(start, end - start)


def _is_wide_boolean(type_: Any) -> bool:
    return isinstance(type_, pa.Bool8Type)


def _is_in_seconds(type_: Any) -> bool:
    return pa.types.is_timestamp(type_) and type_.unit == "s"


def _in_milliseconds(seconds: Any) -> Any:
    """Convert all timestamps except infinities, which are the same number in every unit."""
    counts = seconds.view(pa.int64())
    infinite = pc.equal(pc.abs(counts), _INFINITE)
    finite = pc.if_else(infinite, 0, counts).view(seconds.type).cast(pa.timestamp("ms"))
    return pc.if_else(infinite, counts, finite.view(pa.int64())).view(finite.type)


def _convert(array: Any, *, matches: Callable[[Any], bool], leaf: Callable[[Any], Any]) -> Any:
    """Convert every array of a matching type in ``array`` with ``leaf``, and rebuild the arrays around it."""
    type_ = array.type
    if matches(type_):
        return leaf(array)
    if not _contains(type_, matches):
        return array
    if pa.types.is_struct(type_):
        children = [_convert(array.field(i), matches=matches, leaf=leaf) for i in range(type_.num_fields)]
        fields = [type_.field(i).with_type(child.type) for i, child in enumerate(children)]
        return pa.StructArray.from_arrays(children, fields=fields, mask=array.is_null())
    if pa.types.is_map(type_):
        pairs = [_convert(child, matches=matches, leaf=leaf) for child in (array.keys, array.items)]
        key, item = (
            field.with_type(child.type)
            for field, child in zip((type_.key_field, type_.item_field), pairs, strict=True)
        )
        entries = pa.StructArray.from_arrays(pairs, fields=[key, item])
        return _rows_over(array, entries, type_=pa.map_(key, item))
    if pa.types.is_union(type_):
        members = [_convert(array.field(i), matches=matches, leaf=leaf) for i in range(type_.num_fields)]
        names = [type_.field(i).name for i in range(type_.num_fields)]
        codes: Any = type_.type_codes
        return pa.UnionArray.from_sparse(member_codes(array), members, names, codes)
    return _list_over(array, _convert(array.values, matches=matches, leaf=leaf))


def _contains(type_: Any, matches: Callable[[Any], bool]) -> bool:
    """Return True if a type of DuckDB's matches, or contains a type that matches."""
    if matches(type_):
        return True
    if not any(is_nested(type_) for is_nested in _NESTED_TYPES):
        return False
    return any(_contains(type_.field(i).type, matches) for i in range(type_.num_fields))


def _list_over(array: Any, values: Any) -> Any:
    """Return a list array with the rows of ``array``, which may be a slice, and other values."""
    if pa.types.is_fixed_size_list(array.type):
        return _rows_over(array, values, type_=pa.list_(values.type, array.type.list_size), buffers=1)
    return _rows_over(array, values, type_=pa.list_(values.type))


def _rows_over(array: Any, values: Any, *, type_: Any, buffers: int = 2) -> Any:
    """Return an array of a list or map type that shares its first ``buffers`` buffers with ``array``."""
    return pa.Array.from_buffers(
        type_,
        len(array),
        array.buffers()[:buffers],
        null_count=array.null_count,
        offset=array.offset,
        children=[values],
    )


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
                f'The column "{name}" holds text that is not UTF-8: \\C in a regular expression makes'
                " single bytes. Use . instead, or encode(…) for a BLOB."
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
