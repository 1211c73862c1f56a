"""Sums by key over Arrow tables: exact, of a part of the rows at a time, and parts to a whole."""

from __future__ import annotations

import hashlib
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
    """Numbers texts from 0 in the order in which they are met, over all parts of the rows."""

    def __init__(self) -> None:
        self.texts: Array = pa.array([], pa.string())

    def encode(self, column: Array) -> Array:
        """The number of each value of a column of dictionaries; null of null."""
        coded = column.unify_dictionaries().combine_chunks()
        if not len(self.texts) and len(coded.dictionary.unique()) == len(coded.dictionary):
            self.texts = coded.dictionary
            return coded.indices
        new = coded.dictionary.filter(pc.invert(pc.is_in(coded.dictionary, value_set=self.texts)))
        self.texts = pa.concat_arrays([self.texts, new.unique()])
        return pc.index_in(coded.dictionary, value_set=self.texts).take(coded.indices)

    def number(self, text: str) -> int:
        """The number of ``text``; -1 where it was not met."""
        return int(pc.index(self.texts, text).as_py())

    def ranks(self) -> Array:
        """By number, the place of each text in the order of all."""
        order = pc.sort_indices(self.texts)
        return pc.index_in(self.texts, value_set=self.texts.take(order))


class Statements:
    """Numbers long texts from 0 by their MD5, which is what tells them apart, and holds each once.

    They may come to more than the 2 GiB of `Numbering`, which compares the texts themselves.
    """

    def __init__(self) -> None:
        #: By number.
        self.digests: Array = pa.array([], pa.binary(16))
        self._texts: list[Array] = [pa.array([], pa.large_string())]

    def encode(self, chunk: Array) -> Array:
        """The number of each value of an array of dictionary type; null of null."""
        texts = chunk.dictionary.cast(pa.large_string())
        # Looked at where they lie: as Python's texts they would be as much again.
        digests = pa.array(
            [
                hashlib.md5(text.as_buffer(), usedforsecurity=False).digest()
                for text in texts.cast(pa.large_binary())
            ],
            pa.binary(16),
        )
        new = digests.filter(pc.invert(pc.is_in(digests, value_set=self.digests))).unique()
        if len(new):
            is_all = len(new) == len(texts)
            self._texts.append(texts if is_all else texts.take(pc.index_in(new, value_set=digests)))
            self.digests = pa.concat_arrays([self.digests, new])
        return pc.index_in(digests, value_set=self.digests).take(chunk.indices)

    def texts(self) -> Array:
        """By number; in one piece from then on."""
        self._texts = [pa.concat_arrays(self._texts)]
        return self._texts[0]
