"""Convert Arrow arrays to types that Arrow or Parquet can check and write, at any depth of nesting.

DuckDB has values that Arrow's checks refuse (``TIME '24:00:00'``), and exports booleans of eight bits.
Imports no Django.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Callable


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
