"""Hypothesis strategies for raw files and entries, valid and invalid ones."""

from __future__ import annotations

import json
from datetime import date
from typing import Any

from hypothesis import strategies as st

from logs.columns import BY_NAME, CACHE_STATUSES, COLUMNS, SqlType
from logs.layout import day_start_ms

#: Two days in each of two years. One is the last day of a year.
DAYS = (date(2025, 12, 31), date(2026, 1, 1), date(2026, 1, 2), date(2026, 3, 1))

_TEXT = st.sampled_from(["a", "b", "ü", "測試 😀", "", "x'y\"z\\", "A\u0000B", "line\nbreak"])
_NUMBER = st.sampled_from([0, -1, 1, 2, 3, 7, 10, 999, 2**31 - 1])
_BIG = st.sampled_from([2**53 + 1, 2**62, 2**63 - 1, -(2**63)])


def _moments(day: date) -> st.SearchStrategy[int | None]:
    start = day_start_ms(day)
    inside = st.sampled_from([0, 1, 999, 3_599_999, 3_600_000, 7_200_001, 43_200_000, 86_399_999])
    outside = st.sampled_from([-1, -90_000_000, 86_400_000, 90_000_000])
    return st.one_of(
        inside.map(lambda offset: start + offset),
        inside.map(lambda offset: start + offset),
        outside.map(lambda offset: start + offset),
        st.sampled_from([None, 0, -1, 2**62]),
    )


def entries(day: date) -> st.SearchStrategy[dict[str, Any]]:
    """Valid entries. Statements, users, keys, times and ids are drawn from small pools, so they repeat."""
    known = {
        "timestamp": _moments(day),
        "userName": st.none() | _TEXT,
        "statusCode": st.none() | st.sampled_from([200, 403, 500]),
        "responseSize": st.none() | _NUMBER | _BIG,
        "responseTimeMs": st.none() | _NUMBER | _BIG,
        "warehouseExecutionTimeMs": st.none() | _NUMBER,
        "cacheStatus": st.none()
        | st.sampled_from([*CACHE_STATUSES, "HIT", "MISS", "MISS", "BYPASS", "OF TOMORROW"]),
        "cacheKey": st.none() | st.sampled_from(["k1", "k2"]),
        "matchedRule": st.none() | st.sampled_from(["r1", "r2", "ü"]),
        "matchedRuleName": st.none() | _TEXT,
        "standardizedSql": st.none() | _TEXT,
        "logId": st.none() | st.sampled_from(["", "id1", "id2", "id3", "é"]) | st.uuids().map(str),
        "tables": st.none() | _TEXT | st.lists(_TEXT, max_size=2) | st.just({"t": [1, None, True]}),
        "parameterValues": st.none() | st.just("[1,2]") | st.just([1, "é", None]),
        "isReadOnly": st.none() | st.booleans(),
        "statement": st.just("SELECT 'secret'"),
        "_ordinal": st.just(0),
        "username": st.just("not the column"),
    }
    optional = {name: known[name] for name in ("tables", "parameterValues", "isReadOnly", "statement")}
    rare = {name: known[name] for name in ("_ordinal", "username")}
    required = {name: known[name] for name in known if name not in optional and name not in rare}
    return st.one_of(
        st.fixed_dictionaries(required, optional=optional),
        st.fixed_dictionaries(required, optional=optional),
        st.fixed_dictionaries({}, optional=known),
    )


def _wrong_entries(day: date) -> st.SearchStrategy[Any]:
    """Values that are not entries, and entries with a field of a wrong type."""
    wrong = {
        SqlType.VARCHAR: st.sampled_from([1, True, 1.5, [], {}]),
        SqlType.BIGINT: st.sampled_from(["1", True, 1.5, [], 2**63, -(2**63) - 1]),
        SqlType.INTEGER: st.sampled_from(["1", False, 0.5, {}, 2**31, -(2**31) - 1]),
        SqlType.BOOLEAN: st.sampled_from(["true", 1, 0, []]),
    }
    names = st.sampled_from([column.name for column in COLUMNS if not column.json_text])
    broken = names.flatmap(
        lambda name: st.tuples(entries(day), wrong[BY_NAME[name].type]).map(
            lambda pair: {**pair[0], name: pair[1]}
        )
    )
    return broken | st.sampled_from([None, 5, "text", [], [{}], True])


#: Entries as JSON with repeated fields or unpaired surrogates. Not all are valid.
_ODD = st.sampled_from(
    [
        b'{"timestamp": 1, "timestamp": "x"}',
        b'{"timestamp": "x", "timestamp": 1}',
        b'{"userName": "a", "logId": "odd", "userName": null, "userName": "b", "tables": 1, "tables": []}',
        b'{"userName": null, "userName": "a", "isDDL": true, "isDDL": 1}',
        b'{"userName": "\\ud83d"}',
        b'{"userName": "a", "x": [{"\\udc00": 1}]}',
        b'{"userName": "\\ud83d\\ude00 \\\\ud83d", "logId": "pair"}',
        b'"\\ud800"',
    ]
)


def _bodies(day: date) -> st.SearchStrategy[bytes]:
    values = st.lists(entries(day) | entries(day) | entries(day) | _wrong_entries(day), max_size=6)

    def dump(value: Any) -> bytes:
        return json.dumps(value, ensure_ascii=False).encode()

    def twice(entry: dict[str, Any]) -> bytes:
        inner = json.dumps(entry)[1:-1]
        return ("{" + '"userName": "first", ' * 2 + (inner or '"logId": null') + "}").encode()

    return st.one_of(
        entries(day).map(dump),
        entries(day).map(dump),
        values.map(lambda many: b"\n".join(map(dump, many))),
        values.map(lambda many: b"\r\n".join(map(dump, many)) + b"\n\n"),
        values.map(dump),
        entries(day).map(lambda entry: json.dumps(entry, indent=1).encode()),
        entries(day).map(twice),
        values.map(lambda many: b"\n".join(map(dump, many)) + b'\n{"cut'),
        st.tuples(_ODD, values).map(lambda pair: b"\n".join([pair[0], *map(dump, pair[1])])),
        st.tuples(_ODD, values).map(lambda pair: b"[%b]" % b" , ".join([*map(dump, pair[1]), pair[0]])),
        st.sampled_from([b"", b"\n", b"{}", b"\xff", b'{"userName": "\xff"}', b'{"x": "\\ud800"}', b"NaN"]),
    )


def files_of(day: date, *, max_size: int = 6) -> st.SearchStrategy[dict[str, bytes]]:
    """Files of one day, as a dict of ``HH/<name>.json`` to bytes."""
    names = st.tuples(st.sampled_from([0, 1, 12, 23]), st.sampled_from("abcdé")).map(
        lambda pair: f"{pair[0]:02}/{pair[1]}.json"
    )
    return st.dictionaries(names, _bodies(day), min_size=1, max_size=max_size)


def days() -> st.SearchStrategy[dict[date, dict[str, bytes]]]:
    """Files of several days, by day."""
    return st.fixed_dictionaries({}, optional={day: files_of(day) for day in DAYS})
