"""Group Arrow tables by keys, with exact sums. Large tables are grouped in parts, which are then combined."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from logs.definitions import digest_statement

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    #: For each measure by name: the column that it is computed from, and Arrow's aggregate function.
    Measures = Mapping[str, tuple[str, str]]

#: An Arrow array or chunked array. The type stubs lack many of their methods.
Array: TypeAlias = Any

#: The aggregate function that counts rows. It ignores the column of its measure.
ROWS: Final = "count_all"

#: The type of sums of 64-bit values. They always fit, and Parquet stores the type exactly.
WIDE: Final = pa.decimal128(38, 0)

#: The function that combines partial results, where it differs from the function itself.
_COMBINING_FUNCTIONS: Final = {ROWS: "sum", "count": "sum"}


def group(table: pa.Table, keys: Sequence[str], measures: Measures) -> pa.Table:
    """Return one row with measures for each combination of ``keys``. Null is a key like any other."""
    aggregations: list[Any] = [
        ([] if function == ROWS else column, function) for column, function in measures.values()
    ]
    groups = table.group_by(list(keys), use_threads=False).aggregate(aggregations)
    columns = {
        name: groups[ROWS if function == ROWS else f"{column}_{function}"]
        for name, (column, function) in measures.items()
    }
    return pa.table({**{key: groups[key] for key in keys}, **columns})


def regroup(table: pa.Table, keys: Sequence[str], measures: Measures) -> pa.Table:
    """Combine results of `group` with the same ``measures`` over fewer keys or several ranges of rows."""
    combining = {
        name: (name, _COMBINING_FUNCTIONS.get(function, function)) for name, (_, function) in measures.items()
    }
    return group(table, keys, combining)


def look_up(table: pa.Table, key: str, values: Array, *, names: Sequence[str]) -> dict[str, Array]:
    """Return the columns ``names`` for each of ``values``: from the row with this ``key``, or null.

    ``key`` is unique in the table.
    """
    indexes = pc.index_in(values, value_set=table[key].combine_chunks())
    return {name: table[name].combine_chunks().take(indexes) for name in names}


def means(sums: Array, counts: Array) -> Array:
    """Return ``sum / count`` rounded half up; 0 if the count is 0. Sums are never negative."""
    total = pc.fill_null(sums.combine_chunks(), 0)
    twice = pc.multiply(counts.combine_chunks(), 2)
    if int(pc.max(total).as_py() or 0) < 1 << 61:
        total = pc.multiply(total.cast(pa.int64()), 2)
        return pc.divide(pc.add(total, counts.combine_chunks()), pc.max_element_wise(twice, 1))
    pairs = zip(total.to_pylist(), twice.to_pylist(), strict=True)
    return pa.array([(2 * int(sum_) + double // 2) // (double or 1) for sum_, double in pairs], pa.int64())


class TextDictionary:
    """A dictionary of texts over all parts of the rows. Codes count from 0, in order of appearance.

    Attributes:
        texts: the texts by code.
    """

    def __init__(self) -> None:
        self.texts: Array = pa.array([], pa.string())

    def encode(self, column: Array) -> Array:
        """Return the code of each value of a dictionary-encoded column; null for null."""
        encoded = column.unify_dictionaries().combine_chunks()
        if not len(self.texts) and len(encoded.dictionary.unique()) == len(encoded.dictionary):
            self.texts = encoded.dictionary
            return encoded.indices
        new = encoded.dictionary.filter(pc.invert(pc.is_in(encoded.dictionary, value_set=self.texts)))
        self.texts = pa.concat_arrays([self.texts, new.unique()])
        return pc.index_in(encoded.dictionary, value_set=self.texts).take(encoded.indices)

    def code(self, text: str) -> int:
        """Return the code of ``text``, or -1 if it has none."""
        return int(pc.index(self.texts, text).as_py())

    def ranks(self) -> Array:
        """Return the rank of each text in sorted order, by code."""
        order = pc.sort_indices(self.texts)
        return pc.index_in(self.texts, value_set=self.texts.take(order))


class StatementDictionary:
    """A dictionary of long texts. Texts with the same MD5 count as equal.

    The texts may exceed 2 GiB, the limit of `TextDictionary`.

    Attributes:
        digests: the MD5 of each text, by code.
    """

    def __init__(self) -> None:
        self.digests: Array = pa.array([], pa.binary(16))
        self._texts: list[Array] = [pa.array([], pa.large_string())]

    def encode(self, chunk: Array) -> Array:
        """Return the code of each value of a dictionary array; null for null."""
        texts = chunk.dictionary.cast(pa.large_string())
        # Buffers refer to Arrow's memory. Python strings would be copies.
        digests = pa.array(
            [digest_statement(text.as_buffer()) for text in texts.cast(pa.large_binary())],
            pa.binary(16),
        )
        new = digests.filter(pc.invert(pc.is_in(digests, value_set=self.digests))).unique()
        if len(new):
            is_all = len(new) == len(texts)
            self._texts.append(texts if is_all else texts.take(pc.index_in(new, value_set=digests)))
            self.digests = pa.concat_arrays([self.digests, new])
        return pc.index_in(digests, value_set=self.digests).take(chunk.indices)

    def texts(self) -> Array:
        """Return the texts by code, as one array."""
        # Keep only the joined array, so that memory holds the texts once.
        self._texts = [pa.concat_arrays(self._texts)]
        return self._texts[0]
