"""The DB-API module and the SQLAlchemy dialect of clients/python."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterator
from contextlib import closing
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import duckdb
import httpx
import pytest
import sqlalchemy as sa
from hypothesis import given, reject
from hypothesis import strategies as st
from sqlalchemy.dialects import registry
from tenantadmin_client import dbapi
from tenantadmin_client.sqlalchemy_dialect import TenantadminDialect

from tests.clients.standin import StandIn

if TYPE_CHECKING:
    from tests.clients.programs import Service

registry.register("tenantadmin.rest", "tenantadmin_client.sqlalchemy_dialect", "TenantadminDialect")
registry.register("tenantadmin", "tenantadmin_client.sqlalchemy_dialect", "TenantadminDialect")

LOGS = sa.table(
    "proxy_logs",
    *(sa.column(name, kind) for name, kind in [("day", sa.String()), ("cacheStatus", sa.String())]),
    *(sa.column(name, sa.BigInteger()) for name in ("timestamp", "responseTimeMs")),
)
_TIMES = st.datetimes(min_value=dt.datetime(1, 1, 1), max_value=dt.datetime(9999, 12, 31))  # noqa: DTZ001

# --- Without a service --------------------------------------------------------------------------


_TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
_VALUES: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**127), 2**127 - 1),
    st.floats(allow_nan=False),
    st.decimals(allow_nan=False, allow_infinity=False, places=6, min_value=-(10**9), max_value=10**9),
    _TEXTS,
    st.binary(),
    _TIMES,
    _TIMES.map(lambda time: time.replace(tzinfo=dt.UTC)),
    st.dates(),
    st.times(),
    st.times(timezones=st.integers(-959, 959).map(lambda it: dt.timezone(dt.timedelta(minutes=it)))),
    st.timedeltas(min_value=dt.timedelta(days=-100_000), max_value=dt.timedelta(days=100_000)),
    st.uuids(),
)


class EngineClient:
    """A client whose statements run in the engine without a service: nothing else answers so many."""

    def __init__(self) -> None:
        self._engine = StandIn()

    def request(self, _method: str, _path: str, *, json: dict[str, str]) -> httpx.Response:
        return httpx.Response(200, content=self._engine.run(json["sql"]))

    def close(self) -> None:
        self._engine.server_close()


@pytest.fixture(scope="module")
def cursor() -> Iterator[dbapi.Cursor]:
    """A cursor on the engine, whose answers are encoded as the service does."""
    connection = dbapi.connect("", tenant="t", pat="", client=EngineClient())
    yield connection.cursor()
    connection.close()


def exactly(row: tuple[Any, ...] | None) -> list[tuple[type, object]]:
    """Return what differs for 1 and 1.0, and for 0.0 and -0.0. An infinite number is null, as in the JSON."""
    assert row is not None
    known = [None if isinstance(value, float) and not math.isfinite(value) else value for value in row]
    return [(type(value), str(value)) for value in known]


@given(value=_VALUES)
def test_a_parameter_comes_back_as_it_was(cursor: dbapi.Cursor, value: object) -> None:
    statement = "SELECT ?, '100 %', '?', /* ? /* ? */ ? */ \"?\" FROM (SELECT 1 AS \"?\") -- ?"
    row = cursor.execute(statement, [value]).fetchone()
    assert exactly(row) == exactly((value, "100 %", "?", 1))


_NUMBERS = st.one_of(
    st.integers(-(2**63), 2**64 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.decimals(allow_nan=False, allow_infinity=False, places=4, min_value=-(10**12), max_value=10**12),
)
_KINDS = ("DOUBLE", "FLOAT", "DECIMAL(38, 4)", "HUGEINT", "BIGINT")


@given(_NUMBERS, st.sampled_from(["+", "-", "*", "/", "//", "%"]), _NUMBERS, st.sampled_from(_KINDS))
def test_numbers_are_the_engines(
    cursor: dbapi.Cursor, left: Any, operator: str, right: Any, kind: str
) -> None:
    a, b = dbapi.literal(left), dbapi.literal(right)
    statement = f"SELECT {a} {operator} {b}, TRY_CAST({a} AS {kind}), sum({b}), avg({b})"
    try:
        expected = duckdb.sql(statement).fetchone()
    except duckdb.Error:
        reject()
    assert exactly(cursor.execute(statement).fetchone()) == exactly(expected)


#: What may be before and after a value in a statement that has no value for it yet.
_BEFORE = (
    "SELECT 999 -",
    "SELECT -",
    "SELECT e",
    "SELECT 'a'",
    "SELECT x'",
    "SELECT 1e5",
    "SELECT a",
    "SELECT $",
    "/* ",
)
_AFTER = ("", "'b'", " -- c", "\n- 1", "e'x'", " */ ?", "?", "$$ ? $$", '"?"')


@given(st.sampled_from(_BEFORE), _VALUES, st.sampled_from(_AFTER), _VALUES)
def test_no_value_changes_the_tokens_around_it(before: str, first: Any, after: str, second: Any) -> None:
    statement = f"{before}?{after}"
    values = [first, second][: len(list(dbapi._places(statement)))]
    assert _tokens_around(statement, values) == _tokens_around(statement, [None] * len(values))


def _tokens_around(statement: str, values: list[Any]) -> list[tuple[int, object]]:
    """Return the places in the statement, and the kinds, of the engine's tokens outside of the values."""
    text = dbapi.with_parameters(statement, values)
    spans: list[tuple[int, int]] = []
    for place, value in zip(dbapi._places(statement), values, strict=True):
        start = place + sum(end - start - 1 for start, end in spans)
        spans.append((start, start + len(dbapi.with_parameters("?", [value]))))
    found: list[tuple[int, object]] = []
    for offset, kind in duckdb.tokenize(text):
        at = len(text.encode()[:offset].decode())
        if not any(start < at < end for start, end in spans):
            found.append((at - sum(end - start - 1 for start, end in spans if end <= at), kind))
    return found


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([1], "A list cannot be a parameter"),
        (Decimal("NaN"), "cannot be a parameter if it is NaN"),
        (Decimal(10) ** 38, "more than 38 digits"),
        (Decimal("1e-39"), "more than 38 digits"),
        (2**128, "more than 128 bits"),
        ("a\0", "NUL"),
        ("a\ud800", "surrogate"),
        (dt.timedelta.max, "292,000 years"),
        (dt.datetime.min.replace(tzinfo=dt.timezone(dt.timedelta(hours=1))), "years 1 to 9999"),
    ],
)
def test_a_parameter_without_a_literal_is_refused(value: object, message: str) -> None:
    with pytest.raises(dbapi.ProgrammingError, match=message):
        dbapi.with_parameters("SELECT ?", [value])


def test_parameters_that_do_not_fit_are_refused() -> None:
    for parameters in ([1, 2], (1, 2, 3)):
        with pytest.raises(dbapi.ProgrammingError, match="has 1 question marks"):
            dbapi.with_parameters("SELECT ?, '?'", parameters)
    with pytest.raises(dbapi.ProgrammingError, match="as a list"):
        dbapi.with_parameters("SELECT ?", {"a": 1})  # type: ignore[arg-type]


class Scalar:
    """As of numpy, which the service does not require."""

    def __init__(self, value: object, kind: str) -> None:
        self.dtype, self.shape, self._value = type("dtype", (), {"kind": kind}), (), value

    def item(self) -> object:
        return self._value


def test_scalars_of_numpy_are_their_values() -> None:
    scalars = [Scalar(1.5, "f"), Scalar(-1, "i"), Scalar(True, "b")]
    assert dbapi.with_parameters("SELECT ?, ?, ?", scalars) == (
        "SELECT (CAST('1.5' AS DOUBLE)), (-1), (true)"
    )
    with pytest.raises(dbapi.ProgrammingError, match="Convert it to microseconds"):
        dbapi.literal(Scalar(1, "M"))


@given(st.integers(-50, 50), st.integers(-7, 7).filter(bool), st.sampled_from([sa.Integer, sa.Numeric(9, 1)]))
def test_division_is_that_of_python(left: int, right: int, kind: Any) -> None:
    a, b = sa.literal(left, kind), sa.literal(right, kind)
    compiled = sa.select(a / b, a // b, -a).compile(
        dialect=TenantadminDialect(), compile_kwargs={"literal_binds": True}
    )
    assert duckdb.sql(str(compiled)).fetchall() == [(left / right, left // right, -left)]


def test_literals_have_the_shape_of_sql() -> None:
    dialect = TenantadminDialect()
    logs = sa.table("proxy_logs", sa.column("at", sa.DateTime()), sa.column("document", sa.JSON()))
    for expression, expected in [
        (-sa.literal(-1), "-(-1)"),
        (sa.cast(logs.c.at, sa.Float()), "CAST(proxy_logs.at AS DOUBLE)"),
        (sa.cast(logs.c.at, sa.DateTime(timezone=True)), "CAST(proxy_logs.at AS TIMESTAMPTZ)"),
        (sa.cast(1, sa.Numeric()), "CAST(1 AS DECIMAL(38, 10))"),
        (sa.func.now() - dt.timedelta(hours=48), "now() - to_microseconds(172800000000)"),
        (sa.func.aggregate_strings(sa.column("a"), "; "), "string_agg(a, '; ')"),
        (sa.column("a").regexp_replace("b", "c", flags="g"), "regexp_replace(a, 'b', 'c', 'g')"),
        (logs.c.document["k"].as_string(), "json_extract_string(proxy_logs.document, '$.\"k\"')"),
        (sa.column("a") == sa.literal(dt.date(2026, 3, 1)), "a = CAST('2026-03-01' AS DATE)"),
    ]:
        compiled = expression.compile(dialect=dialect, compile_kwargs={"literal_binds": True})
        assert str(compiled) == expected
    rows = sa.select(logs.c.at).offset(5).compile(dialect=dialect, compile_kwargs={"literal_binds": True})
    assert " ".join(str(rows).split()) == "SELECT proxy_logs.at FROM proxy_logs OFFSET 5"


def test_an_unknown_option_of_the_address_is_refused() -> None:
    with pytest.raises(dbapi.InterfaceError, match="sheme"):
        sa.create_engine("tenantadmin://token:p@host/tenant?sheme=http")


def test_the_address_hides_the_token() -> None:
    engine = sa.create_engine("tenantadmin://token:tas_pat_secret@host/tenant")
    assert "secret" not in f"{engine!r} {engine.url}"


# --- Against the running service ----------------------------------------------------------------


@pytest.fixture
def connection(service: Service) -> Iterator[dbapi.Connection]:
    connection = dbapi.connect(service.url, tenant=service.tenant, pat=service.pat)
    yield connection
    connection.close()


@pytest.fixture
def engine(service: Service) -> Iterator[sa.Engine]:
    host = service.url.removeprefix("http://")
    engine = sa.create_engine(f"tenantadmin://token:{service.pat}@{host}/{service.tenant}?scheme=http")
    yield engine
    engine.dispose()


@pytest.mark.django_db(transaction=True)
def test_values_have_the_types_of_the_answer(connection: dbapi.Connection) -> None:
    columns: list[tuple[str, Any, str]] = [
        ("42::BIGINT", 42, "BIGINT"),
        ("170141183460469231731687303715884105727::HUGEINT", 2**127 - 1, "HUGEINT"),
        ("0.1::DOUBLE", 0.1, "DOUBLE"),
        ("2::DOUBLE", 2.0, "DOUBLE"),
        ("12.340::DECIMAL(9,3)", Decimal("12.340"), "DECIMAL"),
        ("true", True, "BOOLEAN"),
        ("DATE '2026-03-01'", dt.date(2026, 3, 1), "DATE"),
        ("TIME '07:00:01.5'", dt.time(7, 0, 1, 500_000), "TIME"),
        ("TIMESTAMP '2026-03-01 07:00:01'", dt.datetime(2026, 3, 1, 7, 0, 1), "TIMESTAMP"),  # noqa: DTZ001
        (
            "TIMESTAMPTZ '2026-03-01 07:00:01.25+02'",
            dt.datetime(2026, 3, 1, 5, 0, 1, 250_000, tzinfo=dt.UTC),
            "TIMESTAMP WITH TIME ZONE",
        ),
        ("'infinity'::TIMESTAMP", "infinity", "TIMESTAMP"),
        ("[1, 2]", [1, 2], "JSON"),
        ("NULL::DOUBLE", None, "DOUBLE"),
    ]
    cursor = connection.cursor()
    cursor.execute("SELECT " + ", ".join(expression for expression, _, _ in columns))
    assert cursor.fetchall() == [tuple(value for _, value, _ in columns)]
    assert cursor.description is not None
    assert [column[1] for column in cursor.description] == [kind for _, _, kind in columns]
    kinds = [dbapi.NUMBER, dbapi.DATETIME, dbapi.STRING]
    assert [[column[1] == kind for kind in kinds] for column in cursor.description][4:7] == [
        [True, False, False],
        [False, False, False],
        [False, True, False],
    ]


@pytest.mark.django_db(transaction=True)
def test_rows_are_fetched_in_parts(connection: dbapi.Connection) -> None:
    cursor = connection.cursor()
    with pytest.raises(dbapi.InterfaceError):
        cursor.fetchone()
    cursor.execute("SELECT i FROM range(?) t(i) ORDER BY i", [6])
    assert (cursor.rowcount, cursor.fetchone(), cursor.fetchmany(2)) == (6, (0,), [(1,), (2,)])
    assert (next(iter(cursor)), cursor.fetchall(), cursor.fetchone()) == ((3,), [(4,), (5,)], None)


@pytest.mark.django_db(transaction=True)
def test_errors_say_what_to_do(connection: dbapi.Connection, service: Service) -> None:
    cursor = connection.cursor()
    with pytest.raises(dbapi.ProgrammingError, match='Did you mean "proxy_logs"'):
        cursor.execute("SELECT * FROM proxy_log")
    with pytest.raises(dbapi.DataError, match=r"after 10,000 rows. Aggregate, or write a LIMIT"):
        cursor.execute("SELECT * FROM range(20000)")
    with pytest.raises(dbapi.NotSupportedError):
        cursor.executemany("SELECT 1", [])
    with (
        closing(dbapi.connect(service.url, tenant=service.tenant, pat="tas_pat_unknown")) as stranger,
        pytest.raises(dbapi.OperationalError, match="401"),
    ):
        stranger.cursor().execute("SELECT 1")
    options: dict[str, Any] = {"pat": service.pat, "allow_truncated": True}
    with closing(dbapi.connect(service.url, tenant=service.tenant, **options)) as lenient:
        assert lenient.cursor().execute("SELECT * FROM range(20000)").rowcount == 10_000


@pytest.mark.django_db(transaction=True)
def test_sqlalchemy_reads_the_log(engine: sa.Engine) -> None:
    is_hit = sa.case((LOGS.c.cacheStatus == "HIT", 1), else_=0)
    statement = (
        sa.select(LOGS.c.day, sa.func.avg(is_hit), sa.func.count().label("n"))
        .where(LOGS.c.cacheStatus.in_(["HIT", "MISS"]), LOGS.c.cacheStatus.regexp_match("^[HM]"))
        .where(~LOGS.c.cacheStatus.regexp_match("x"), LOGS.c.cacheStatus.ilike("%s%") | sa.true())
        .group_by(LOGS.c.day)
        .order_by(sa.desc("n"))
        .limit(5)
        .offset(0)
    )
    with engine.connect() as connection:
        assert connection.execute(statement).fetchall() == [("2026-03-01", 1 / 3, 3)]
        seconds = sa.func.epoch_ms(LOGS.c.timestamp)
        first = connection.scalar(sa.select(sa.func.min(seconds)))
        assert first == dt.datetime(2026, 3, 1, 7, 0, 1)  # noqa: DTZ001


@pytest.mark.django_db(transaction=True)
def test_tools_find_the_table_and_its_columns(engine: sa.Engine) -> None:
    inspector = sa.inspect(engine)
    assert inspector.get_schema_names() == ["main"]
    assert inspector.get_table_names() == inspector.get_table_names("main") == ["proxy_logs"]
    assert (inspector.get_view_names(), inspector.get_table_names("other")) == ([], [])
    table = sa.Table("proxy_logs", sa.MetaData(), autoload_with=engine)
    assert isinstance(table.c.timestamp.type, sa.BigInteger)
    assert isinstance(table.c.isReadOnly.type, sa.Boolean)
    with engine.connect() as connection:
        row = connection.execute(sa.select(table).order_by(table.c.timestamp)).mappings().first()
    assert row is not None
    assert (row["userName"], row["cacheStatus"], row["day"]) == ("Ana", "MISS", "2026-03-01")
    with pytest.raises(sa.exc.NoSuchTableError):
        inspector.get_columns("other")
