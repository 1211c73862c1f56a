"""Sums by key over Arrow tables: exact, of a part of the rows at a time, and parts to a whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pyarrow as pa

from tenantadmin.arrow import pc

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    #: Name of each measure to the column that it is made of and the function.
    Measures = Mapping[str, tuple[str, str]]

#: An array of Arrow, in one piece or several, whose stubs know too little of what it can do.
Array: TypeAlias = Any

#: The function of a measure that counts rows, whatever its column.
ROWS: Final = "count_all"

#: Sums of 64-bit values: wide enough for any of them, and a type that Parquet keeps exactly.
WIDE: Final = pa.decimal128(38, 0)

#: How measures of groups become those of groups of groups.
_AGAIN: Final = {ROWS: "sum", "count": "sum"}


def group(table: pa.Table, keys: Sequence[str], measures: Measures) -> pa.Table:
    """One row per combination of ``keys``, of which null is a value, with its measures."""
    wanted: list[Any] = [
        ([] if function == ROWS else column, function) for column, function in measures.values()
    ]
    found = table.group_by(list(keys), use_threads=False).aggregate(wanted)
    named = {
        name: found[ROWS if function == ROWS else f"{column}_{function}"]
        for name, (column, function) in measures.items()
    }
    return pa.table({**{key: found[key] for key in keys}, **named})


def regroup(table: pa.Table, keys: Sequence[str], measures: Measures) -> pa.Table:
    """As `group`, from what that gave for the same ``measures`` and more keys, or for parts of the rows."""
    again = {name: (name, _AGAIN.get(function, function)) for name, (_, function) in measures.items()}
    return group(table, keys, again)


def aligned(table: pa.Table, key: str, wanted: Array, *, names: Sequence[str]) -> dict[str, Array]:
    """The columns ``names`` of the rows in which ``key``, which is unique, has each value; null without."""
    places = pc.index_in(wanted, value_set=table[key].combine_chunks())
    return {name: table[name].combine_chunks().take(places) for name in names}


def means(sums: Array, counts: Array) -> Array:
    """``sum / count`` rounded half up, 0 where there is nothing to average; no sum is negative."""
    total = pc.fill_null(sums.combine_chunks(), 0)
    twice = pc.multiply(counts.combine_chunks(), 2)
    if int(pc.max(total).as_py() or 0) < 1 << 61:
        total = pc.multiply(total.cast(pa.int64()), 2)
        return pc.divide(pc.add(total, counts.combine_chunks()), pc.max_element_wise(twice, 1))
    pairs = zip(total.to_pylist(), twice.to_pylist(), strict=True)
    return pa.array([(2 * int(one) + two // 2) // (two or 1) for one, two in pairs], pa.int64())


class Numbering:
    """Numbers texts from 0 in the order in which they are met, over all parts of the rows.

    Offsets of 64 bits: the texts of a day may come to more than 2 GiB.
    """

    def __init__(self) -> None:
        self.texts: Array = pa.array([], pa.large_string())

    def encode(self, column: Array) -> Array:
        """The number of each value of a column of dictionaries; null of null."""
        coded = _with_large_texts(column).unify_dictionaries().combine_chunks()
        if not len(self.texts) and len(coded.dictionary.unique()) == len(coded.dictionary):
            self.texts = coded.dictionary
            return coded.indices
        new = coded.dictionary.filter(pc.invert(pc.is_in(coded.dictionary, value_set=self.texts)))
        self.texts = pa.concat_arrays([self.texts, new.unique()])
        return pc.index_in(coded.dictionary, value_set=self.texts).take(coded.indices)

    def number(self, text: str) -> int:
        """The number of ``text``; -1 where it was not met."""
        return int(pc.index(self.texts, pa.scalar(text, self.texts.type)).as_py())

    def ranks(self) -> Array:
        """By number, the place of each text in the order of all."""
        order = pc.sort_indices(self.texts)
        return pc.index_in(self.texts, value_set=self.texts.take(order))


def _with_large_texts(column: Array) -> Array:
    """A column of dictionaries, the offsets of whose texts have 64 bits. Texts are not copied."""
    kind: Any = pa.large_string()
    chunks = [
        pa.DictionaryArray.from_arrays(chunk.indices, chunk.dictionary.cast(kind)) for chunk in column.chunks
    ]
    chunked: Any = pa.chunked_array
    return chunked(chunks, pa.dictionary(column.type.index_type, kind))
