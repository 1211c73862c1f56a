"""Assemble a document from the rows of published queries, and compare it with the served document."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import zip_longest
from typing import TYPE_CHECKING, Annotated, Any, Final

from msgspec import Meta

from analytics.published.queries import QUERIES
from rules.json_text import join_pointer
from tenantadmin.lib.core.structs import JsonStruct

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from analytics.published.queries import PublishedQuery
    from rules.json_text import Path

#: The most differences that are listed. All are counted.
MAX_DIFFERENCES: Final = 1_000


class UnequalValue(JsonStruct):
    """A value of the document that is not what the query gives. Null can also mean absent."""

    path: Annotated[str, Meta(description="JSON Pointer into the document.")]
    document: Any
    query: Any


@dataclass(slots=True)
class Comparison:
    """The number of compared values, the number of different values, and the first differences."""

    fields: int = 0
    unequal_count: int = 0
    unequal: list[UnequalValue] = field(default_factory=list)


def queries_of(document: str) -> list[PublishedQuery]:
    """Return the queries that together give a kind of document, such as ``day``, ``month`` or ``rules``."""
    return [query for name, query in QUERIES.items() if name.partition(".")[0] == document]


def assemble(
    rows: Mapping[str, Sequence[Mapping[str, Any]]], *, constants: Mapping[str, Any]
) -> dict[str, Any]:
    """Return a document.

    Args:
        rows: the rows of each query of the document, by name.
        constants: the fields that no query gives: the identity of the document, and its time.
    """
    document: dict[str, Any] = dict(constants)
    for name, query_rows in rows.items():
        _, _, array = name.partition(".")
        if array:
            document[array] = list(query_rows)
        else:
            (row,) = query_rows
            document.update(row)
    return document


def compare(document: object, expected: object) -> Comparison:
    """Compare all values, field names and array lengths of a document with the result of the SQL."""
    comparison = Comparison()
    _compare(document, expected, (), comparison)
    return comparison


def _compare(document: object, expected: object, path: Path, comparison: Comparison) -> None:
    parts: Iterable[tuple[str | int, object, object]]
    if isinstance(document, dict) and isinstance(expected, dict):
        names = dict.fromkeys((*expected, *document))
        parts = ((name, document.get(name), expected.get(name)) for name in names)
        # An absent field is not the same as null.
        is_same_shape = document.keys() == expected.keys()
    elif isinstance(document, list) and isinstance(expected, list):
        pairs = zip_longest(document, expected)
        parts = ((index, value, expected_value) for index, (value, expected_value) in enumerate(pairs))
        is_same_shape = len(document) == len(expected)
    else:
        comparison.fields += 1
        if type(document) is not type(expected) or document != expected:
            _note(document, expected, path, comparison)
        return
    before = comparison.unequal_count
    for name, value, expected_value in parts:
        _compare(value, expected_value, (*path, name), comparison)
    if not is_same_shape and comparison.unequal_count == before:
        _note(document, expected, path, comparison)


def _note(document: object, expected: object, path: Path, comparison: Comparison) -> None:
    comparison.unequal_count += 1
    if len(comparison.unequal) < MAX_DIFFERENCES:
        comparison.unequal.append(UnequalValue(path=join_pointer(path), document=document, query=expected))
