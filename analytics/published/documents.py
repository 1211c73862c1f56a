"""Put the rows of published queries together to a document, and compare it with the one that is served."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Final

from analytics.published.queries import QUERIES
from rules.json_text import join_pointer

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from analytics.published.queries import PublishedQuery
    from rules.json_text import Path

#: More differences are counted, but not listed.
MAX_DIFFERENCES: Final = 1_000


@dataclass(frozen=True, slots=True)
class Difference:
    """A value of a document that is not what SQL says. ``path`` is a JSON Pointer. Absent values are None."""

    path: str
    document: object
    query: object


@dataclass(slots=True)
class Comparison:
    """How many values were compared, how many differ, and the first of those that differ."""

    fields: int = 0
    unequal_count: int = 0
    unequal: list[Difference] = field(default_factory=list)


def queries_of(document: str) -> list[PublishedQuery]:
    """Return the queries that together give a kind of document: ``day``, ``month``, ``rules`` and so on."""
    return [query for name, query in QUERIES.items() if name.partition(".")[0] == document]


def assemble(
    rows: Mapping[str, Sequence[Mapping[str, Any]]], *, constants: Mapping[str, Any]
) -> dict[str, Any]:
    """Return a document.

    Args:
        rows: the rows of each of its queries, by name.
        constants: its fields that say which document it is, and when it was made.
    """
    document: dict[str, Any] = dict(constants)
    for name, found in rows.items():
        _, _, array = name.partition(".")
        if array:
            document[array] = list(found)
        else:
            (row,) = found
            document.update(row)
    return document


def compare(document: object, expected: object) -> Comparison:
    """Compare every value of a document with what SQL says, the names of fields and lengths of arrays too."""
    comparison = Comparison()
    _compare(document, expected, (), comparison)
    return comparison


def _compare(document: object, expected: object, path: Path, comparison: Comparison) -> None:
    parts: Iterable[tuple[str | int, object, object]]
    if isinstance(document, dict) and isinstance(expected, dict):
        names = dict.fromkeys((*expected, *document))
        parts = ((name, document.get(name), expected.get(name)) for name in names)
        # An absent field is no null.
        is_same_shape = document.keys() == expected.keys()
    elif isinstance(document, list) and isinstance(expected, list):
        pairs = zip_longest(document, expected)
        parts = ((index, value, wanted) for index, (value, wanted) in enumerate(pairs))
        is_same_shape = len(document) == len(expected)
    else:
        comparison.fields += 1
        if type(document) is not type(expected) or document != expected:
            _note(document, expected, path, comparison)
        return
    before = comparison.unequal_count
    for name, value, wanted in parts:
        _compare(value, wanted, (*path, name), comparison)
    if not is_same_shape and comparison.unequal_count == before:
        _note(document, expected, path, comparison)


def _note(document: object, expected: object, path: Path, comparison: Comparison) -> None:
    comparison.unequal_count += 1
    if len(comparison.unequal) < MAX_DIFFERENCES:
        comparison.unequal.append(Difference(join_pointer(path), document, expected))
