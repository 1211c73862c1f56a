"""Read which tables each query of Snowflake's history accessed, as Snowflake has resolved their names.

``SNOWFLAKE.ACCOUNT_USAGE.ACCESS_HISTORY`` has a row for each query. DIRECT_OBJECTS_ACCESSED are the tables
and views that its text names, OBJECTS_MODIFIED those that it writes: arrays of objects with ``objectDomain``
and ``objectName``, which has the database and the schema. BASE_OBJECTS_ACCESSED, the tables behind views, are
not what a Gateway finds in the text.
Source: docs.snowflake.com/en/sql-reference/account-usage/access_history, read on 2026-11-29.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import msgspec

from analytics.history.rows import BadHistory
from analytics.history.tables import Column, read_records

_COLUMNS: Final = {
    "id": Column(("query_id",)),
    "read": Column(("direct_objects_accessed",)),
    "written": Column(("objects_modified",), "which tables statements write, but for those in their texts"),
}


@dataclass(frozen=True, slots=True)
class Accesses:
    """What a file says was accessed.

    Attributes:
        tables: by the id of a query, the names of its tables and views, without quotes.
        digest: of the file.
        missing: as of `read_records`.
    """

    tables: Mapping[str, tuple[str, ...]]
    digest: bytes
    missing: Mapping[str, str]


class _Object(msgspec.Struct, rename="camel"):
    object_domain: str | None = None
    object_name: str | None = None


def read_accesses(path: Path) -> Accesses:
    """Read a file whole: it is for all files of the history.

    Raises:
        BadHistory: it is no ACCESS_HISTORY, or damaged.
        OSError: it cannot be read.
    """
    with path.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").digest()
    tables: dict[str, tuple[str, ...]] = {}
    missing: dict[str, str] = {}
    for number, (query, *values) in read_records(
        path, _COLUMNS, what="Snowflake's accesses", missing=missing
    ):
        try:
            names = dict.fromkeys(name for value in values for name in _find_names(value))
        except msgspec.MsgspecError as error:
            raise BadHistory(
                f"{path.name}, row {number}: the objects of query {query} are no array of objects: {error}."
            ) from error
        tables[str(query)] = _shared(tuple(names))
    return Accesses(tables, digest, missing)


@lru_cache(10_000)
def _shared(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return one object for equal names: a history has few of them, and many queries."""
    return names


def _find_names(value: Any) -> tuple[str, ...]:
    """Return the names of tables and views in a column: JSON in a text, or a list."""
    if not isinstance(value, str):
        return _names_of(msgspec.convert(value or [], list[_Object]))
    return _decode_names(value)


@lru_cache(10_000)
def _decode_names(text: str) -> tuple[str, ...]:
    return _names_of(msgspec.json.decode(text, type=list[_Object]))


def _names_of(objects: list[_Object]) -> tuple[str, ...]:
    return tuple(
        found.object_name.replace('"', "")
        for found in objects
        # Such as "Materialized view" and "External table"; not stages, functions and their like.
        if found.object_name and (found.object_domain or "").lower().endswith(("table", "view"))
    )
