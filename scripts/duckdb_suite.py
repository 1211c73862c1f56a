"""Run the queries of DuckDB's own tests through the guard and the engine, and compare them with DuckDB alone.

``python -m scripts.duckdb_suite FOLDER`` reads every ``.test`` file below a folder, such as ``test/sql`` of
DuckDB's repository at the tag of the installed version. It counts the queries that the guard refuses, that
fail, and that give the same rows as DuckDB. DuckDB itself compares the rows: as values, and as it reads the
values of the JSON. Rows may be in any order if the statement has no ORDER BY of its own. The status is 1 if
a row is wrong, or if a query ends in an error of the service. It runs half an hour at most on one processor.
"""

# ruff: noqa: T201, S608

from __future__ import annotations

import argparse
import itertools
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import duckdb
import msgspec
import pyarrow as pa

from logs.sql.engines.local import LocalEngine
from logs.sql.protocol import Limits, LogSource, QueryFailed, QueryRejected, QueryResult, QueryTimeout
from logs.sql.results import ndjson_pieces
from tenantadmin.lib.core.errors import ApiError

_LIMITS: Final = Limits()
#: A directive of sqllogictest that starts a query; its rows follow after ----.
_START: Final = re.compile(r"^(?:query|statement)\b")
_CONFIG: Final[dict[str, Any]] = {"threads": 1, "arrow_lossless_conversion": True}
_NESTED: Final = re.compile(r"^(?:STRUCT|MAP|UNION)|\]$")
#: What DuckDB does not read exactly in nested JSON. Of durations it has another form everywhere.
_INEXACT: Final = re.compile(r"\b(?:FLOAT|DOUBLE|DECIMAL|U?HUGEINT|BIGNUM|BLOB|JSON|UNION|MAP)\b")
_UNREADABLE: Final = re.compile(r'\b(?:INTERVAL|VARIANT|GEOMETRY)\b|"NULL"')
_LINE: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])


def queries_of(text: str) -> Iterator[str]:
    """Yield the SQL of each ``query`` and ``statement``, as written. Loops are not unrolled."""
    for block in re.split(r"\n\s*\n", text.replace("\r\n", "\n")):
        lines = [line for line in block.strip("\n").split("\n") if not line.startswith("#")]
        while lines and not _START.match(lines[0]):
            lines.pop(0)
        sql = "\n".join(itertools.takewhile(lambda line: line != "----", lines[1:])).strip()
        if sql:
            yield sql


def answer(engine: LocalEngine, statement: str) -> tuple[str, QueryResult | str]:
    """Return what becomes of a statement, and its result or its error."""
    try:
        result = engine.execute(source=LogSource("suite", ()), statement=statement, limits=_LIMITS)
        list(ndjson_pieces(result))
    except QueryRejected as error:
        return "refused", error.message
    except QueryTimeout as error:
        return "timed out", error.message
    except QueryFailed as error:
        return "failed", error.message
    except ApiError as error:
        return f"ERROR {error.status}", str(error)
    except Exception as error:  # noqa: BLE001 - what would be a 500
        return "ERROR 500", repr(error)
    return "truncated" if result.truncated else "answered", result


class Judge:
    """DuckDB alone, which says whether a result is right."""

    def __init__(self) -> None:
        self._plain = duckdb.connect(config=_CONFIG)
        self._plain.execute("SET TimeZone = 'UTC'")
        self._comparing = duckdb.connect(config=_CONFIG)
        self._comparing.execute("SET TimeZone = 'UTC'")

    def judge(self, statement: str, result: QueryResult) -> tuple[str, str]:
        """Return the outcome, and what is expected."""
        first, second = self._run(statement), self._run(statement)
        if first is None or second is None:
            return "answered, not by DuckDB in Python", ""
        types, theirs = first
        self._comparing.register("theirs", theirs)
        if types != [column.type for column in result.columns]:
            return "WRONG types", f"not {types}"
        ordered = self._is_ordered(statement)
        try:
            if self._differ(second[1], theirs, ordered=ordered):
                return "answered, other rows each time", ""
            if self._differ(_renamed(pa.Table.from_batches(result.batches)), theirs, ordered=ordered):
                return "WRONG rows", self._show_expected()
            if self._differ(_json_table(result), theirs, ordered=ordered, types=types):
                return "WRONG JSON", self._show_expected()
        except duckdb.Error as error:
            return "WRONG or not to be compared", str(error)
        return "answered, compared", ""

    def _show_expected(self) -> str:
        return str(self._comparing.query("FROM theirs LIMIT 5"))

    def _run(self, statement: str) -> tuple[list[str], pa.Table] | None:
        try:
            result = self._plain.execute(statement)
            types = [str(column[1]) for column in result.description or ()]
            return types, _renamed(result.to_arrow_table())
        except Exception:  # noqa: BLE001 - of any kind: Arrow cannot hold all values
            return None

    def _is_ordered(self, statement: str) -> bool:
        """Return True if the whole statement has an ORDER BY."""
        (text,) = self._comparing.execute("SELECT json_serialize_sql(?)", [statement]).fetchall()[0]
        tree = json.loads(text)
        modifiers = tree["statements"][0]["node"]["modifiers"] if not tree["error"] else []
        return any(modifier["type"] == "ORDER_MODIFIER" for modifier in modifiers)

    def _differ(
        self, ours: pa.Table, theirs: pa.Table, *, ordered: bool, types: list[str] | None = None
    ) -> bool:
        """Return True if two tables have other rows. ``types``: ours holds JSON of values of these types."""
        if ours.num_rows != theirs.num_rows:
            return True
        names = theirs.schema.names
        left, right = [], []
        for name, type_ in zip(names, types or names, strict=True):
            value, expected = (name, name) if types is None else self._read(name, type_)
            if value:
                left.append(f"{value} AS {name}")
                right.append(f"{expected} AS {name}")
        if not left:
            return False
        number = ["row_number() OVER ()"] if ordered else []
        self._comparing.register("ours", ours)
        self._comparing.register("theirs", theirs)
        ours_sql = f"SELECT {', '.join(left + number)} FROM ours"
        theirs_sql = f"SELECT {', '.join(right + number)} FROM theirs"
        both = f"({ours_sql}) EXCEPT ALL ({theirs_sql})"
        ((differences,),) = self._comparing.execute(f"SELECT count(*) FROM ({both})").fetchall()
        return bool(differences)

    def _read(self, name: str, type_: str) -> tuple[str, str]:
        """Return SQL that reads JSON as a type, and SQL of what to compare it with; or two empty texts."""
        # DuckDB reads numbers of JSON as DOUBLE.
        text = f"(CASE WHEN {name} LIKE '\"%' THEN {name}::JSON ->> '$' ELSE {name} END)"
        if type_ in {"FLOAT", "DOUBLE"}:
            return f"{text}::{type_}", f"CASE WHEN isfinite({name}) THEN {name} END"
        if type_ == "BLOB":
            return f"from_base64({text})", name
        if type_ in {"VARCHAR", "JSON"}:
            return text, name
        is_nested = _NESTED.search(type_)
        if _UNREADABLE.search(type_) or (is_nested and _INEXACT.search(type_)):
            return "", ""
        if type_.startswith(("DATE", "TIMESTAMP")) and not is_nested:
            # DuckDB reads no year with a plus.
            return f"regexp_replace({text}, '^\\+0*', '')::{type_}", name
        try:
            self._comparing.execute(f"SELECT NULL::{type_}")
        except duckdb.Error:  # a struct without names
            return "", ""
        return f"{f'{name}::JSON' if is_nested else text}::{type_}", name


def _renamed(table: pa.Table) -> pa.Table:
    """Return a table whose names are plain and different, and whose types are those that pyarrow knows."""
    return pa.Table.from_arrays(table.columns, names=[f"c{index}" for index in range(table.num_columns)])


def _json_table(result: QueryResult) -> pa.Table:
    """Return the JSON of each value as text; null is null."""
    lines = b"".join(ndjson_pieces(result)).splitlines()
    rows = [[bytes(value).decode() for value in _LINE.decode(line).values()] for line in lines]
    columns = zip(*rows, strict=True) if rows else ([] for _ in result.columns)
    texts = [
        pa.array([None if text == "null" else text for text in column], pa.string()) for column in columns
    ]
    return pa.table({f"c{index}": text for index, text in enumerate(texts)})


def main(folder: Path) -> int:
    """Run the queries of a folder. Return the status of the command."""
    counts: Counter[str] = Counter()
    engine = LocalEngine(slots=1, per_tenant=1, queue=4, warm=2, default_limits=_LIMITS)
    judge = Judge()
    try:
        seen: set[str] = set()
        for path in sorted(folder.rglob("*.test")):
            for statement in queries_of(path.read_text(encoding="utf-8", errors="replace")):
                if statement in seen:
                    continue
                seen.add(statement)
                outcome, found = answer(engine, statement)
                if isinstance(found, QueryResult) and outcome == "answered":
                    answered = found
                    outcome, found = judge.judge(statement, answered)
                    if outcome.startswith("WRONG"):
                        rows = b"".join(itertools.islice(ndjson_pieces(answered), 1))
                        found = f"{found}\n{rows[:500].decode()}"
                counts[outcome] += 1
                if outcome.startswith(("ERROR", "WRONG")):
                    print(f"{outcome} {path}: {statement}\n  {str(found)[:1500]}", flush=True)
    finally:
        engine.close()
    for outcome, count in sorted(counts.items()):
        print(f"{count:7} {outcome}")
    print(f"{counts.total():7} different statements")
    return int(any(outcome.startswith(("ERROR", "WRONG")) for outcome in counts))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    sys.exit(main(parser.parse_args().folder))
