"""What a client gets: rows of the log and of the catalog, by each protocol and format."""

from __future__ import annotations

import socket
import struct
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING

import psycopg
import pytest

from logs.models import QueryRun
from logs.wire.messages import Message
from tests import factories
from tests.conftest import ApiClient
from tests.logs.wire.raw import Raw, states

if TYPE_CHECKING:
    from tests.logs.wire.scene import Scene


def test_rows_of_the_log(filled: Scene) -> None:
    statement = (
        'SELECT "userName", count(*) AS n, sum("responseTimeMs") AS total, bool_and("isReadOnly") AS reads,'
        ' max(time) AS last FROM "public"."proxy_logs_time" WHERE "userName" <> %s GROUP BY 1 ORDER BY 1'
    )
    expected = [
        ("u0", 3, Decimal(0), True, datetime(2026, 3, 3)),  # noqa: DTZ001
        ("u1", 2, Decimal(20), True, datetime(2026, 3, 3, 1)),  # noqa: DTZ001
    ]
    with filled.connect(application_name="reports") as connection:
        for binary in (False, True):
            with connection.cursor(binary=binary) as cursor:
                assert cursor.execute(statement, ["u2"]).fetchall() == expected
        assert connection.execute(
            "SELECT count(*) FROM pg_class WHERE relname ~ '^proxy_logs'"
        ).fetchone() == (2,)
    # The catalog's statement is in no audit.
    runs = QueryRun.objects.values_list("outcome", "engine", "program", "email", "client_address", "rows")
    assert set(runs) == {("ok", "duckdb", "reports", "member@example.org", "127.0.0.1", 2)}


def test_values_are_the_same_in_both_formats(filled: Scene) -> None:
    of_each_type = (
        "i::TINYINT, i::INTEGER, i::BIGINT, (i::HUGEINT * 10**20)::HUGEINT, (i / 3)::DECIMAL(12, 5),"
        " i / 4, (i / 4)::FLOAT, DATE '2026-01-01' + i::INTEGER,"
        " TIMESTAMP '2026-01-01 10:00:00.5' + INTERVAL (i) DAY,"
        " TIME '10:00:00' + INTERVAL (i) HOUR, INTERVAL (i) DAY, i = 1, 'blob'::BLOB,"
        " '00000000-0000-0000-0000-00000000000a'::UUID, TIMESTAMPTZ '2026-01-01 10:00:00+00'"
    )
    statement = f"SELECT {of_each_type} FROM range(-2, 3) r(i), (SELECT day FROM proxy_logs LIMIT 1)"
    found = []
    with filled.connect() as connection:
        for binary in (False, True):
            with connection.cursor(binary=binary) as cursor:
                found.append(cursor.execute(statement.encode()).fetchall())
    assert found[0] == found[1]
    assert [str(row[7]) for row in found[1]] == [
        *("2025-12-30", "2025-12-31", "2026-01-01", "2026-01-02", "2026-01-03")
    ]
    assert [row[4] for row in found[1]][-1] == Decimal("0.66667")


def test_the_api_has_the_view_with_times_too(filled: Scene) -> None:
    client = ApiClient(factories.sign_in(filled.world.member))
    statement = (
        "SELECT min(time) AS first, max(expires) AS last FROM proxy_logs_time WHERE day > '2026-03-01'"
    )
    answer = client.post(f"/tenants/{filled.database}/query", {"sql": statement})
    assert b'"rows":[{"first":"2026-03-02T00:00:00","last":null}]' in b"".join(answer)


def test_what_duckdb_does_not_know_is_translated(filled: Scene) -> None:
    with filled.connect() as connection:
        for statement, expected in (
            ("SELECT to_char(max(time), 'YYYY-MM-DD') FROM proxy_logs_time", "2026-03-03"),
            ("SELECT date_trunc('month', min(time))::date::text FROM proxy_logs_time", "2026-03-01"),
            ("SELECT to_char(max(time), 'YYYY-MM-DD HH24:MI') FROM proxy_logs_time", "2026-03-03 02:00"),
            ("SELECT extract(epoch FROM min(time))::bigint FROM proxy_logs_time", 1772323200),
            (
                "SELECT (floor(extract(epoch FROM min(time)) / 300) * 300)::bigint FROM proxy_logs_time",
                1772323200,
            ),
            (
                "SELECT to_timestamp(min(timestamp) / 1000)::timestamp::text FROM proxy_logs",
                "2026-03-01 00:00:00",
            ),
            ("SELECT count(*) FILTER (WHERE \"userName\" ILIKE 'U0')::int4 FROM proxy_logs", 3),
            ('SELECT string_agg(DISTINCT "userName", \',\' ORDER BY "userName") FROM proxy_logs', "u0,u1,u2"),
        ):
            assert connection.execute(statement.encode()).fetchone() == (expected,), statement


def test_a_format_that_would_be_translated_wrongly_is_refused(filled: Scene) -> None:
    with filled.connect() as connection:
        for form in ("HH12:MI AM", "Mon", "D", 'YYYY-"Q"Q'):
            with pytest.raises(psycopg.Error, match="to_char"):
                connection.execute(f"SELECT to_char(max(time), '{form}') FROM proxy_logs_time".encode())


def test_a_portal_is_read_in_pages(filled: Scene) -> None:
    with Raw.signed_in(filled) as raw:
        raw.query("BEGIN")
        parse = Message(b"P", b"\0SELECT day FROM proxy_logs ORDER BY day\0\0\0")
        bind = Message(b"B", b"p\0\0" + bytes(6))
        page = Message(b"E", b"p\0" + struct.pack("!i", 4))
        raw.send(parse, bind, Message(b"D", b"Pp\0"), page, Message(b"S"))
        assert b"".join(message.kind for message in raw.read_all()) == b"12TDDDDsZ"
        raw.send(page, Message(b"S"))
        answers = raw.read_all()
        assert b"".join(message.kind for message in answers) == b"DDCZ"
        assert answers[2].body == b"SELECT 2\0"
        raw.query("COMMIT")
        raw.send(page, Message(b"S"))
        assert states(raw.read_all()) == ["34000"]
    assert QueryRun.objects.count() == 1


def test_copies(filled: Scene) -> None:
    statement = "COPY (SELECT \"userName\", nullif(day, '2026-03-01') FROM proxy_logs LIMIT 2) TO STDOUT"
    with filled.connect() as connection:
        for options, expected in (
            ("", b"u0\t\\N\nu0\t2026-03-02\n"),
            ("WITH CSV HEADER", b'"userName",'),
            ("(FORMAT csv)", b"u0,\nu0,2026-03-02\n"),
            ("(FORMAT binary)", b"PGCOPY\n\xff\r\n\0" + bytes(8) + b"\0\2\0\0\0\2u0\xff\xff\xff\xff"),
        ):
            with connection.cursor().copy(f"{statement} {options}".encode()) as copied:
                assert b"".join(map(bytes, copied)).startswith(expected)
        for refused in (
            "COPY proxy_logs TO STDOUT",
            f"{statement} (DELIMITER ';')",
            "COPY proxy_logs FROM STDIN",
        ):
            with pytest.raises(psycopg.errors.FeatureNotSupported):
                connection.execute(refused.encode())


def test_several_statements_of_a_simple_query(filled: Scene) -> None:
    with Raw.signed_in(filled) as raw:
        answers = raw.query("SELECT 1; SELECT count(*) FROM proxy_logs;; SHOW timezone;")
        assert b"".join(message.kind for message in answers) == b"TDCTDCTDCZ"
        answers = raw.query("SELECT 1; SELECT nope FROM proxy_logs; SELECT 2")
        assert b"".join(message.kind for message in answers) == b"TDCEZ"
        assert b"".join(message.kind for message in raw.query(" ; ")) == b"IZ"
        assert b"".join(message.kind for message in raw.query("")) == b"IZ"


def test_errors_have_states(filled: Scene) -> None:
    with Raw.signed_in(filled) as raw:
        for statement, state in (
            ("SELECT nope FROM proxy_logs", "22000"),
            ("DELETE FROM proxy_logs", "42000"),
            ("SELECT * FROM proxy_logs, read_csv('/etc/passwd')", "42000"),
            ("SELECT nope FROM pg_class", "42703"),
            ("ALTER ROLE x", "42501"),
        ):
            assert states(raw.query(statement)) == [state], statement
        # In the extended protocol all is skipped up to the Sync.
        parse = Message(b"P", b"\0SELECT nope FROM proxy_logs\0\0\0")
        raw.send(
            parse, Message(b"B", b"\0\0" + bytes(6)), Message(b"E", b"\0" + bytes(4)), parse, Message(b"S")
        )
        assert b"".join(message.kind for message in raw.read_all()) == b"12EZ"


def test_the_limit_of_rows_is_told(filled: Scene) -> None:
    with Raw.signed_in(filled) as raw:
        answers = raw.query("SELECT 1 FROM proxy_logs, range(5000)")
        kinds = [message.kind for message in answers]
        assert kinds.count(b"D") == 10_000
        assert kinds[-3:] == [b"N", b"C", b"Z"]
        assert b"cut at 10000 rows" in answers[-3].body


def test_values_have_the_types_that_postgresql_infers(filled: Scene) -> None:
    text = b'SELECT count(*) FROM proxy_logs WHERE "statusCode" = $1 AND userName <> $2 AND time > $3'
    with Raw.signed_in(filled) as raw:
        raw.send(Message(b"P", b"s\0" + text.replace(b"proxy_logs", b"proxy_logs_time") + b"\0\0\0"))
        raw.send(Message(b"D", b"Ss\0"), Message(b"S"))
        answers = raw.read_all()
        assert b"".join(message.kind for message in answers) == b"1tTZ"
        assert answers[1].body == struct.pack("!HIII", 3, 23, 25, 1114)


def test_small_answers_do_not_wait(scene: Scene) -> None:
    with scene.connect():
        (connected,) = scene.server._connected.values()
        own = connected.session._client._writer.get_extra_info("socket")
        assert own.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
