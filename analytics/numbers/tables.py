"""Arrow tables of a day: grouped with exact sums, read from the day's log, and stored as rollups.

Contract: "Summary records". A rollup has five tables with exact numbers. Summaries are computed from them,
not from raw rows. The rollups of days merge into months and years (`analytics.numbers.merged`): the same
tables with fewer columns.

- ``statements``: one row per statement with its text, in the order of the daily document;
- ``users``: user x statement, sorted by user; within a user in the order of the user's daily document;
- ``rules``: rule x statement;
- ``hours``: hour x user;
- ``activity``: user x day, and a row for the whole tenant (``user_name`` null) per day.

A statement is represented by its MD5 as a UUID, which DuckDB compares as one number. ``hour_mask`` has a bit
for each of the 24 hours in which a group has entries, so that distinct counts per hour are exact. ``is_kept``
means that the statement was stored in the cache or served from it. ``latest_*`` are columns of the latest
entry of a group. `LATEST_ORDER` of ``latest_timestamp``, ``latest_log_id`` and ``latest_day`` decides which
entry is the latest, and within a day ``latest_row``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from threading import Lock
from typing import Any, BinaryIO, Final, Self, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from logs.columns import MAX_TIMESTAMP
from logs.definitions import digest_statement

#: The first and last millisecond (epoch) of the years 0001 to 9999, which ISO 8601 can write.
FIRST_MS: Final = -62_135_596_800_000
LAST_MS: Final = MAX_TIMESTAMP


def mean(total: int, count: int) -> int:
    """Return ``total / count`` rounded half up; 0 if ``count`` is 0."""
    return mean_or_none(total, count) or 0


def mean_or_none(total: int, count: int) -> int | None:
    """Return ``total / count`` rounded half up; None if ``count`` is 0."""
    if not count:
        return None
    return (2 * total + count) // (2 * count)


def rate(part: int, whole: int) -> float:
    """Return ``part / whole`` with four decimals, rounded half up; 0.0 if ``whole`` is 0."""
    return (20_000 * part + whole) // (2 * whole) / 10_000 if whole else 0.0


#: For each measure by name: the column that it is computed from, and Arrow's aggregate function.
Measures: TypeAlias = "Mapping[str, tuple[str, str]]"

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


#: Raise it when the same log gives other rollups or documents. Then all days and periods are built again.
ROLLUP_VERSION: Final = 7
#: Marks a day whose rollup files are lost. They are built again from the day's file.
NO_VERSION: Final = 0

STATEMENTS: Final = "statements"
USERS: Final = "users"
RULES: Final = "rules"
HOURS: Final = "hours"
ACTIVITY: Final = "activity"
TABLES: Final = (STATEMENTS, USERS, RULES, HOURS, ACTIVITY)

#: The latest entry has the highest value. If time and logId are equal, the first entry by object key is the
#: latest: the entry of the earlier day, or within a day the higher row.
LATEST_ORDER: Final = "row(latest_timestamp, latest_log_id, DATE '1970-01-01' - latest_day, latest_row)"

#: Columns of the latest entry that a statement record shows.
LATEST_VALUES: Final = ("latest_cache_key", "latest_rule", "latest_status", "latest_code", "latest_size")
#: Columns that identify the latest entry.
_LATEST_KEY: Final = ("latest_row", "latest_timestamp", "latest_log_id", "latest_day")
_STATEMENT_COLUMNS: Final = (
    "entries", "hits", "misses", "bypasses", "passthroughs", "time_mean", "warehouse_sum",
    "first_timestamp", "last_timestamp", "hour_mask", "is_kept",
)  # fmt: skip
#: The columns of each table of a day, in order. ``misses`` counts MISS in statements and users, which have
#: columns for BYPASS and PASSTHROUGH. In rules and hours it counts all three; ``not_cached`` of rules has the
#: latter two.
COLUMNS_OF: Final[Mapping[str, tuple[str, ...]]] = {
    STATEMENTS: (
        "sql", "statement", *_STATEMENT_COLUMNS, "uncached_warehouse_sum",
        *_LATEST_KEY, *LATEST_VALUES,
    ),
    USERS: ("user_name", "statement", *_STATEMENT_COLUMNS, *LATEST_VALUES),
    RULES: (
        "rule", "statement", "entries", "hits", "misses", "not_cached",
        "miss_warehouse_sum", "miss_warehouse_count", *_LATEST_KEY, "latest_rule_name",
    ),
    HOURS: (
        "hour", "user_name", "entries", "hits", "misses", "hit_bytes", "other_bytes",
        "time_sum", "time_count", "time_min", "time_max",
        "hit_time_sum", "hit_time_count", "miss_time_sum", "miss_time_count",
    ),
    ACTIVITY: (
        "user_name", "day", "users", "queries", "hits", "total", "hit_bytes",
        "time_sum", "time_count", "time_min", "time_max", "stored_elements", "stored_size",
    ),
}  # fmt: skip
#: SQL over rows of statements: the requests that were not cached, and all requests.
NOT_CACHED_SUM: Final = "bypasses + passthroughs"
REQUEST_SUM: Final = f"hits + misses + {NOT_CACHED_SUM}"
#: The types of columns. All others are 64-bit integers.
TYPES: Final[Mapping[str, Any]] = {
    **dict.fromkeys(("sql", "user_name", "rule", "latest_log_id", "latest_rule_name"), pa.string()),
    **dict.fromkeys(("latest_cache_key", "latest_rule", "latest_status"), pa.string()),
    **dict.fromkeys(("hit_bytes", "other_bytes", "time_sum", "hit_time_sum", "miss_time_sum"), WIDE),
    **dict.fromkeys(("day", "latest_day"), pa.date32()),
    "statement": pa.uuid(),
    "stored_size": WIDE,
    "is_kept": pa.bool_(),
    "hour": pa.int8(),
    "hour_mask": pa.int32(),
    "latest_code": pa.int32(),
}

#: Maximum rows of a row group. Small row groups let a reader of one user skip most other rows.
_DEFAULT_GROUP_ROWS: Final = 2048
_GROUP_ROWS: Final = {STATEMENTS: 8192, HOURS: 512}
#: Maximum bytes of statements in a row group, or one longer statement. Readers hold a row group in memory.
GROUP_BYTES: Final = 4 << 20
#: Columns that do not compress. Below, columns whose values repeat.
_INCOMPRESSIBLE: Final = frozenset({"statement", "latest_cache_key", "latest_log_id"})
_REPEATING: Final = frozenset({"user_name", "rule", "latest_rule", "latest_rule_name", "latest_status"})


def write_table(table: pa.Table, path: Path) -> None:
    """Write a table of a day's rollups. The file name is the table name."""
    columns = COLUMNS_OF[path.stem]
    schema = pa.schema([(name, TYPES.get(name, pa.int64())) for name in columns])
    options: dict[str, Any] = {
        "compression": {name: "NONE" if name in _INCOMPRESSIBLE else "LZ4" for name in columns},
        "use_dictionary": [name for name in columns if name in _REPEATING],
    }
    rows = _GROUP_ROWS.get(path.stem, _DEFAULT_GROUP_ROWS)
    with pq.ParquetWriter(path, schema, **options) as writer:
        for part in _parts(table):
            columns_of_part = {field.name: _cast(part[field.name], field.type) for field in schema}
            writer.write_table(pa.table(columns_of_part), row_group_size=rows)


def _parts(table: pa.Table) -> Iterator[pa.Table]:
    """Yield the rows. A part of the statement table is one row group, limited by `GROUP_BYTES`."""
    if "sql" not in table.column_names:
        yield table
        return
    texts: Array = table["sql"].combine_chunks()
    lengths = pc.binary_length(texts.dictionary).take(texts.indices).to_pylist()
    start = size = 0
    for row, length in enumerate(lengths):
        if row > start and (size + length > GROUP_BYTES or row - start == _GROUP_ROWS[STATEMENTS]):
            yield table.slice(start, row - start)
            start, size = row, 0
        size += length
    yield table.slice(start)


def _cast(column: Array, type_: Any) -> Array:
    array = column.combine_chunks()
    return pa.ExtensionArray.from_storage(type_, array) if type_ == pa.uuid() else array.cast(type_)


#: The bytes to keep in memory. Further texts go to a temporary file.
_MEMORY_BYTES: Final = 4 << 20
#: The maximum number and bytes of texts to read at a time. A longer text is read alone.
_BATCH_TEXTS: Final = 2048
_TEXT_BATCH_BYTES: Final = 4 << 20


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
            if texts and (len(texts) == _BATCH_TEXTS or size + length > _TEXT_BATCH_BYTES):
                yield pa.array(texts, pa.binary()).cast(pa.string())
                texts, size = [], 0
            file.seek(start)
            texts.append(file.read(length))
            size += length
        if texts:
            yield pa.array(texts, pa.binary()).cast(pa.string())


_USER: Final = "user_name"


class DayTables:
    """The rollups of a day.

    Args:
        files: the file of each table in ``NAMES``.
        user: read only the rows of this user.
    """

    NAMES: Final = (HOURS, STATEMENTS, USERS)

    def __init__(self, files: Mapping[str, Path | str], *, user: str | None = None) -> None:
        self._files = files
        self.user = user

    def hours(self, columns: Sequence[str]) -> pa.Table:
        """Return the table hour x user, with ``user_name``. For one user, there is one row per hour."""
        return self._rows(HOURS, columns)

    def statements(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Yield statement records in the order of the document, a part at a time, with their text as ``sql``.

        A part has some thousand records and at most a few MiB of text. For one user, memory holds all
        records, but not all texts.
        """
        if self.user is None:
            yield from _row_groups(self._files[STATEMENTS], columns=["sql", *columns])
            return
        records = self._rows(USERS, columns).combine_chunks()
        statements = _uuid_bytes(records["statement"])
        with TextFile() as texts:
            for table in _row_groups(self._files[STATEMENTS], columns=["statement", "sql"]):
                keys = _uuid_bytes(table["statement"])
                is_wanted = pc.is_in(keys, value_set=statements)
                texts.add(keys.filter(is_wanted), table["sql"].combine_chunks().filter(is_wanted))
            start = 0
            for part in texts.read(statements):
                yield records.slice(start, len(part)).append_column("sql", part)
                start += len(part)

    def _rows(self, table: str, columns: Sequence[str]) -> pa.Table:
        """Return the rows of the user, or all rows. Only row groups that may have the user are read."""
        names = [*columns, _USER]
        tables = []
        with _open_parquet(self._files[table]) as file:
            for number in range(file.num_row_groups):
                if self.user is None:
                    tables.append(file.read_row_group(number, columns=names, use_threads=False))
                elif _may_contain(file.metadata.row_group(number), self.user):
                    group = file.read_row_group(number, columns=names, use_threads=False)
                    tables.append(group.filter(pc.equal(group[_USER], self.user)))
            return pa.concat_tables(tables) if tables else file.schema_arrow.empty_table().select(names)


def _row_groups(path: Path | str, *, columns: Sequence[str]) -> Iterator[pa.Table]:
    with _open_parquet(path) as file:
        for number in range(file.num_row_groups):
            yield file.read_row_group(number, columns=list(columns), use_threads=False)


@contextmanager
def _open_parquet(path: Path | str) -> Iterator[pq.ParquetFile]:
    # An open file is faster than a path, for which Arrow first looks for a file system.
    with pa.OSFile(str(path), "rb") as source, pq.ParquetFile(source) as file:
        yield file


def _may_contain(group: Any, user: str) -> bool:
    """Return False if the statistics of a row group show that it has no rows of ``user``."""
    for number in range(group.num_columns):
        column = group.column(number)
        if column.path_in_schema == _USER:
            statistics = column.statistics
            if statistics is None or not statistics.has_min_max:
                return True
            return bool(statistics.min <= user <= statistics.max)
    raise AssertionError("the table has a column of users")


def _uuid_bytes(column: Array) -> Array:
    """Return the 16 bytes of each UUID."""
    return column.combine_chunks().storage


#: The maximum size of a part: row groups (of at most 122,880 rows each), and bytes.
GROUPS: Final = 8
BYTES: Final = 256 << 20

#: Columns that get codes. Below, columns that are read with the dictionaries and codes of the file.
_ENCODED: Final = ("userName", "matchedRule", "cacheStatus", "cacheKey")
_STATEMENT: Final = "standardizedSql"
_DICTIONARY_COLUMNS: Final = (*_ENCODED, _STATEMENT, "matchedRuleName")
#: If the statements of a part have more bytes, few of them repeat. Small batches of texts are read instead.
STATEMENT_BYTES: Final = 64 << 20
_BATCH_BYTES: Final = 16 << 20


class DayRows:
    """The rows of a day's file. They are in the order that decides which entry is the latest.

    Threads may share it.

    Args:
        columns: columns to read besides the statements.

    Attributes:
        texts: a dictionary for each encoded column.
        statements: the dictionary of the statements.
    """

    def __init__(self, path: Path, *, columns: Sequence[str]) -> None:
        self._path = path
        self._file = pq.ParquetFile(path, read_dictionary=list(_DICTIONARY_COLUMNS))
        self._columns = list(columns)
        self._parts = list(_log_parts(self._file.metadata, [*columns, _STATEMENT]))
        self._latest_part: tuple[int, pa.Table] | None = None
        self._reading = Lock()
        self.texts = {name: TextDictionary() for name in _ENCODED}
        self.statements = StatementDictionary()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def parts(self) -> Iterator[pa.Table]:
        """Yield all rows. Codes of ``texts`` and ``statements`` replace texts; ``row`` is the row number."""
        start = 0
        for groups in self._parts:
            table = self._file.read_row_groups(groups, columns=self._columns)
            codes = {name: dictionary.encode(table[name]) for name, dictionary in self.texts.items()}
            codes[_STATEMENT] = self._encode_statements(groups)
            # Keep the last part for `at`: most days have only one.
            self._latest_part = groups[0], table
            rows = pa.arange(start, start + table.num_rows)  # type: ignore[attr-defined]
            start += table.num_rows
            yield pa.table(
                {**dict(zip(table.column_names, table.columns, strict=True)), **codes, "row": rows}
            )

    def _encode_statements(self, groups: list[int]) -> Array:
        row_groups = [self._file.metadata.row_group(number) for number in groups]
        index = self._file.schema.names.index(_STATEMENT)
        size = sum(group.column(index).total_uncompressed_size for group in row_groups)
        if size <= STATEMENT_BYTES:
            chunks = self._file.read_row_groups(groups, columns=[_STATEMENT])[_STATEMENT].chunks
            return pa.concat_arrays([self.statements.encode(chunk) for chunk in chunks])
        rows = max(1, _BATCH_BYTES * sum(group.num_rows for group in row_groups) // size)
        with pq.ParquetFile(self._path) as file:
            batches = file.iter_batches(rows, row_groups=groups, columns=[_STATEMENT], use_threads=False)
            return pa.concat_arrays(
                [self.statements.encode(batch.column(0).dictionary_encode()) for batch in batches]
            )

    def at(self, rows: Array, columns: Sequence[str]) -> pa.Table:
        """Return ``columns`` of the rows with the numbers ``rows``, in that order."""
        numbers = rows.unique()
        numbers = numbers.take(pc.sort_indices(numbers))
        tables = []
        for start, table in self._read_parts(columns):
            end = start + table.num_rows
            in_part = numbers.filter(pc.and_(pc.greater_equal(numbers, start), pc.less(numbers, end)))
            taken = table.select(list(columns)).take(pc.subtract(in_part, start))
            tables.append(
                taken.cast(pa.schema([(field.name, _decoded(field.type)) for field in taken.schema]))
            )
        return pa.concat_tables(tables).combine_chunks().take(pc.index_in(rows, value_set=numbers))

    def _read_parts(self, columns: Sequence[str]) -> Iterator[tuple[int, pa.Table]]:
        """Yield the number of the first row of each part, and its ``columns``."""
        start = 0
        for groups in self._parts:
            with self._reading:
                if self._latest_part is not None and self._latest_part[0] == groups[0]:
                    table = self._latest_part[1]
                else:
                    table = self._file.read_row_groups(groups, columns=list(columns))
            yield start, table
            start += table.num_rows


def _log_parts(file: pq.FileMetaData, columns: Sequence[str]) -> Iterator[list[int]]:
    """Yield the row groups of each part. A part is as large as `GROUPS` and `BYTES` of ``columns`` allow."""
    indexes = [file.schema.names.index(name) for name in columns]
    part: list[int] = []
    part_size = 0
    for number in range(file.num_row_groups):
        group = file.row_group(number)
        size = sum(group.column(index).total_uncompressed_size for index in indexes)
        if part and (len(part) == GROUPS or part_size + size > BYTES):
            yield part
            part, part_size = [], 0
        part.append(number)
        part_size += size
    if part:
        yield part


def _decoded(type_: pa.DataType) -> pa.DataType:
    return type_.value_type if isinstance(type_, pa.DictionaryType) else type_
