"""Values of every DuckDB type as JSON."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal

import duckdb
import msgspec
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from logs.sql.collecting import as_integers, with_plain_booleans
from logs.sql.results import date_text, interval_text, json_values, time_text, timestamp_text

_connection = duckdb.connect(config={"arrow_lossless_conversion": True})
_connection.execute("SET TimeZone = 'UTC'")


def _json(expression: str) -> str:
    """Return the JSON of a value. The value is in a slice that does not begin at 0 and ends with a null."""
    table = _connection.execute(
        f"SELECT CASE WHEN i < 3 THEN {expression} END AS v FROM range(4) t(i)"
    ).to_arrow_table()
    (batch,) = table.combine_chunks().to_batches()
    values = json_values(batch.slice(1).column(0))
    first, second, null = values
    assert null is None
    assert msgspec.json.encode(first) == msgspec.json.encode(second)
    return msgspec.json.encode(first).decode()


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("1::TINYINT", "1"),
        ("9007199254740993::BIGINT", "9007199254740993"),
        ("18446744073709551615::UBIGINT", "18446744073709551615"),
        ("170141183460469231731687303715884105727::HUGEINT", "170141183460469231731687303715884105727"),
        ("(-170141183460469231731687303715884105728)::HUGEINT", "-170141183460469231731687303715884105728"),
        ("340282366920938463463374607431768211455::UHUGEINT", "340282366920938463463374607431768211455"),
        (
            "'123456789012345678901234567890123456789012345'::BIGNUM",
            "123456789012345678901234567890123456789012345",
        ),
        (
            "'-123456789012345678901234567890123456789012345'::BIGNUM",
            "-123456789012345678901234567890123456789012345",
        ),
        ("'-1'::BIGNUM", "-1"),
        ("1.50::DECIMAL(4, 2)", "1.50"),
        ("'12345678901234567890.1234567890'::DECIMAL(38, 10)", "12345678901234567890.1234567890"),
        ("0::DECIMAL(38, 30)", "0.000000000000000000000000000000"),
        ("0.1::DOUBLE + 0.2::DOUBLE", "0.30000000000000004"),
        ("'nan'::DOUBLE", "null"),
        ("'-inf'::FLOAT", "null"),
        ("'né\"e'", '"né\\"e"'),
        ("'a'::ENUM ('b', 'a')", '"a"'),
        ("'48639d51-7420-47e4-b2ed-fc7c98d98c57'::UUID", '"48639d51-7420-47e4-b2ed-fc7c98d98c57"'),
        ("'\\xAA\\x00'::BLOB", '"qgA="'),
        ("'0101'::BIT", '"0101"'),
        ("'{\"a\": 1}'::JSON", '"{\\"a\\": 1}"'),
        ("DATE '2026-01-31'", '"2026-01-31"'),
        ("'infinity'::DATE", '"infinity"'),
        ("'-infinity'::TIMESTAMP", '"-infinity"'),
        ("'infinity'::TIMESTAMPTZ", '"infinity"'),
        ("TIME '24:00:00'", '"24:00:00"'),
        ("TIME '01:02:03.5'", '"01:02:03.500000"'),
        ("'12:00:00+05:30'::TIMETZ", '"12:00:00+05:30"'),
        ("'12:00:00-08'::TIMETZ", '"12:00:00-08:00"'),
        ("TIMESTAMP '2026-01-01 00:00:00'", '"2026-01-01T00:00:00"'),
        ("TIMESTAMP_S '2026-01-01 00:00:01'", '"2026-01-01T00:00:01"'),
        ("TIMESTAMP_MS '2026-01-01 00:00:00.5'", '"2026-01-01T00:00:00.500"'),
        ("TIMESTAMP_NS '2026-01-01 00:00:00.123456789'", '"2026-01-01T00:00:00.123456789"'),
        ("TIMESTAMPTZ '2026-01-01 00:00:00+02'", '"2025-12-31T22:00:00Z"'),
        ("INTERVAL '14 months 3 days 4 hours 5.25 seconds'", '"P1Y2M3DT4H5.25S"'),
        ("[1, NULL, 3]", "[1,null,3]"),
        ("[[1], NULL, []]", "[[1],null,[]]"),
        ("[TIME '24:00:00']", '["24:00:00"]'),
        ("[170141183460469231731687303715884105727::HUGEINT]", "[170141183460469231731687303715884105727]"),
        ("{'a': 1, 'b': {'c': [DATE '2026-01-01']}}", '{"a":1,"b":{"c":["2026-01-01"]}}'),
        ("row(1, 'x')", '[1,"x"]'),
        ("MAP {'a': 1, 'b': NULL}", '{"a":1,"b":null}'),
        ("MAP {1: 'x'}", '{"1":"x"}'),
        (
            "MAP {'nan'::DOUBLE: 1, 'inf'::DOUBLE: 2, '-inf'::DOUBLE: 3, 0.5: 4, 1: 5}",
            '{"nan":1,"inf":2,"-inf":3,"0.5":4,"1.0":5}',
        ),
        ("MAP {'nan'::FLOAT: 'nan'::FLOAT}", '{"nan":null}'),
        ("MAP {[1]: 2}", '{"[1]":2}'),
        ("MAP {'t': TIME '24:00:00'}", '{"t":"24:00:00"}'),
        ("union_value(a := 1)", "1"),
        ("['a'::ENUM ('a', 'b')]", '["a"]'),
    ],
)
def test_the_json_of_every_type(expression: str, text: str) -> None:
    assert _json(expression) == text


@given(st.lists(st.integers(0, 9) | st.text(), max_size=6), st.data())
def test_slices_of_unions_are_converted(values: list[int | str], data: st.DataObject) -> None:
    codes = pa.array([int(isinstance(value, str)) for value in values], pa.int8())
    numbers = pa.array([value if isinstance(value, int) else None for value in values], pa.int64())
    texts = pa.array([value if isinstance(value, str) else None for value in values], pa.string())
    union = pa.UnionArray.from_sparse(codes, [numbers, texts])
    start = data.draw(st.integers(0, len(values)))
    assert json_values(union.slice(start)) == values[start:]


def test_lists_of_a_fixed_size_are_converted() -> None:
    array = pa.array([None, [1, 2], [3, None]], pa.list_(pa.int32(), 2))
    assert json_values(array.slice(1)) == [[1, 2], [3, None]]


@pytest.mark.parametrize(
    ("months", "days", "nanoseconds", "text"),
    [
        (0, 0, 0, "PT0S"),
        (-13, 0, 0, "P-1Y-1M"),
        (0, 1, -3_600_000_000_000, "P1DT-1H"),
        (0, 0, -500_000_000, "PT-0.5S"),
        (0, 0, 1, "PT0.000000001S"),
        (0, -2, 61_000_000_000, "P-2DT1M1S"),
    ],
)
def test_intervals_are_iso_durations(months: int, days: int, nanoseconds: int, text: str) -> None:
    assert interval_text(months, days, nanoseconds) == text


@given(st.dates())
def test_dates_are_iso(date: dt.date) -> None:
    assert date_text((date - dt.date(1970, 1, 1)).days) == date.isoformat()


@pytest.mark.parametrize(
    ("days", "text"), [(-719_529, "-000001-12-31"), (-719_528, "0000-01-01"), (2_932_897, "+010000-01-01")]
)
def test_years_outside_of_0000_to_9999_have_a_sign(days: int, text: str) -> None:
    assert date_text(days) == text


@given(st.times())
def test_times_are_iso(time: dt.time) -> None:
    micros = ((time.hour * 60 + time.minute) * 60 + time.second) * 1_000_000 + time.microsecond
    assert time_text(micros, "us") == time.isoformat()


@given(st.datetimes())
def test_timestamps_are_iso(moment: dt.datetime) -> None:
    micros = (moment - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1)  # noqa: DTZ001
    assert timestamp_text(micros, "us", "Z") == moment.isoformat() + "Z"


@given(st.lists(st.none() | st.decimals(-(10**20), 10**20, places=4)))
def test_decimals_are_exact(numbers: list[Decimal | None]) -> None:
    array = pa.array(numbers, pa.decimal128(38, 4))
    text = msgspec.json.encode(json_values(array)).decode()
    assert json.loads(text, parse_float=Decimal, parse_int=Decimal) == numbers


_EXPRESSIONS = {
    "plain": "true",
    "list": "[i > 1, NULL, false]",
    "struct": "{'a': i > 1, 't': TIME '24:00:00'}",
    "nested": "[{'a': [i > 1]}, NULL]",
    "map": "MAP {'a': i > 1, 't': NULL}",
    "map with boolean keys": "MAP {i > 1: 'x', false: 'y'}",
    "nested maps": "[{'m': MAP {'a': [MAP {TIME '24:00:00': i > 1}]}}, NULL]",
    "union": "if(v, union_value(t := TIME '24:00:00'), union_value(b := [v])::UNION(t TIME, b BOOL[]))",
    "nested unions": "[union_value(m := MAP {i > 1: TIME '24:00:00'}), NULL]",
    "empty map": "MAP {}::MAP(VARCHAR, BOOLEAN)",
}


@pytest.mark.parametrize("name", _EXPRESSIONS)
@given(st.lists(st.booleans(), min_size=1, max_size=6), st.data())
def test_converting_booleans_keeps_nested_values(name: str, valid: list[bool], data: st.DataObject) -> None:
    query = (
        f"SELECT CASE WHEN v THEN {_EXPRESSIONS[name]} END AS x FROM (SELECT unnest({valid}) AS v, 2 AS i)"
    )
    (batch,) = _connection.execute(query).to_arrow_table().combine_chunks().to_batches()
    array = batch.column(0)
    start = data.draw(st.integers(0, len(valid)))
    expected = json_values(array)[start:]
    converted = with_plain_booleans(array.slice(start))
    as_integers(converted).validate(full=True)
    assert "bool8" not in str(converted.type)
    assert ("map<" in str(converted.type)) == ("MAP" in _EXPRESSIONS[name])
    assert json_values(converted) == expected


def test_times_are_viewed_as_integers() -> None:
    array = pa.array([1, 86_400_000_000], pa.int64()).view(pa.time64("us"))
    assert as_integers(array).to_pylist() == [1, 86_400_000_000]
    assert as_integers(pa.array([[1]], pa.list_(pa.time64("us")))).type == pa.list_(pa.int64())
