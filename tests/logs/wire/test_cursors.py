"""Cursors by DECLARE, FETCH, MOVE and CLOSE over the log."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import psycopg
import pytest

from logs.models import QueryRun
from logs.wire.messages import Message
from logs.wire.statements import Action, Failure, read_statement, require
from tests.logs.wire.raw import Raw, states

if TYPE_CHECKING:
    from tests.logs.wire.scene import Scene

DAYS = 'SELECT day, "responseTimeMs" FROM proxy_logs ORDER BY timestamp'


@pytest.mark.parametrize(
    ("statement", "action"),
    [
        ("FETCH c", Action("FETCH", cursor=b"c", count=1)),
        ("fetch next from C", Action("FETCH", cursor=b"c", count=1)),
        ('FETCH FORWARD 100 FROM "My c"', Action("FETCH", cursor=b"My c", count=100)),
        ("FETCH 7 IN c -- seven", Action("FETCH", cursor=b"c", count=7)),
        ("FETCH FORWARD ALL FROM c", Action("FETCH", cursor=b"c")),
        ("MOVE ALL IN c", Action("MOVE", cursor=b"c")),
        ("MOVE FORWARD FROM c", Action("MOVE", cursor=b"c", count=1)),
        ('CLOSE "all"', Action("CLOSE", cursor=b"all")),
        ("DECLARE c CURSOR FOR SELECT 1", Action("DECLARE", " SELECT 1", cursor=b"c")),
        (
            'declare "a""b" binary no scroll cursor with hold for SELECT 1',
            Action("DECLARE", " SELECT 1", form="binary", cursor=b'a"b', is_held=True),
        ),
        (
            "DECLARE c INSENSITIVE SCROLL CURSOR WITHOUT HOLD FOR SELECT 'for'",
            Action("DECLARE", " SELECT 'for'", cursor=b"c"),
        ),
        ("SELECT 1", Action("SELECT", "SELECT 1")),
        ('SELECT 1 FROM "public".proxy_logs', Action("SELECT", "SELECT 1 FROM proxy_logs")),
    ],
)
def test_what_a_statement_does(statement: str, action: Action) -> None:
    assert read_statement(statement).action == action


@pytest.mark.parametrize(
    "direction", ["PRIOR", "BACKWARD 1", "-1", "0", "FIRST", "LAST", "ABSOLUTE 1", "RELATIVE 1", "x"]
)
@pytest.mark.parametrize("verb", ["FETCH", "MOVE"])
def test_a_cursor_goes_forward(verb: str, direction: str) -> None:
    with pytest.raises(Failure, match=r"only goes forward: FETCH n FROM c\.") as raised:
        require(read_statement(f"{verb} {direction} FROM c").action)
    assert raised.value.code == "55000"


def test_what_a_statement_uses_by_a_name() -> None:
    for text, verb, name in (
        ("SELECT 1", "", b""),
        ("CLOSE ALL", "close", b""),
        ("CLOSE C", "close", b"c"),
        ("fetch", "", b""),
        ("", "", b""),
        ("DEALLOCATE PREPARE a", "deallocate", b"a"),
        ("PREPARE a AS SELECT b", "prepare", b"a"),
        ("DISCARD PLANS", "discard", b"plans"),
        # As PostgreSQL cuts it.
        (f'SAVEPOINT "{"x" * 62}ö"', "savepoint", b"x" * 62),
    ):
        assert read_statement(text).use == (verb, name, len(text))
    with pytest.raises(Failure, match="Write DECLARE"):
        require(read_statement("DECLARE c FOR SELECT day FROM proxy_logs").action)


def test_a_cursor_is_read_in_pages(filled: Scene) -> None:
    with Raw.signed_in(filled) as raw:
        raw.query("BEGIN")
        answers = raw.query(f"DECLARE c CURSOR FOR {DAYS}; FETCH 2 FROM c; MOVE c; FETCH ALL FROM c; FETCH c")
        kinds = b"".join(message.kind for message in answers)
        assert kinds == b"CTDDCCTDDDCTCZ"
        tags = [message.body for message in answers if message.kind == b"C"]
        assert tags == [b"DECLARE CURSOR\0", b"FETCH 2\0", b"MOVE 1\0", b"FETCH 3\0", b"FETCH 0\0"]
        assert states(raw.query(f"DECLARE c CURSOR FOR {DAYS}")) == ["42P03"]
        assert [message.body for message in raw.query("CLOSE c")] == [b"CLOSE CURSOR\0", b"T"]
        # The name is the catalog server's to refuse now.
        assert states(raw.query("FETCH c")) == ["34000"]
    assert QueryRun.objects.count() == 1


def test_a_cursor_ends_with_its_transaction(filled: Scene) -> None:
    with Raw.signed_in(filled) as raw:
        assert states(raw.query(f"DECLARE c CURSOR FOR {DAYS}")) == ["25P01"]
        for end in ("COMMIT", "ROLLBACK", "COMMIT; BEGIN"):
            raw.query(f"BEGIN; DECLARE c CURSOR FOR {DAYS}; DECLARE h CURSOR WITH HOLD FOR {DAYS}")
            raw.query(end)
            assert states(raw.query("FETCH c")) == ["34000"]
            raw.query("ROLLBACK")
            assert states(raw.query("FETCH 1 FROM h")) == []
            assert states(raw.query("CLOSE ALL")) == []
            assert states(raw.query("FETCH h")) == ["34000"]


def test_a_cursor_that_fails_is_none(filled: Scene) -> None:
    with Raw.signed_in(filled) as raw:
        raw.query("BEGIN")
        assert states(raw.query("DECLARE c CURSOR FOR SELECT nope FROM proxy_logs")) == ["22000"]
        assert states(raw.query(f"DECLARE c CURSOR FOR {DAYS}; FETCH BACKWARD 1 FROM c")) == ["55000"]
        assert states(raw.query("DECLARE d CURSOR FOR SELECT 1; FETCH d; CLOSE d")) == []


def test_cursors_have_a_limit(filled: Scene) -> None:
    with Raw.signed_in(filled) as raw:
        for number in range(32):
            assert states(raw.query(f"DECLARE c{number} CURSOR WITH HOLD FOR {DAYS}")) == []
        assert states(raw.query(f"DECLARE c CURSOR WITH HOLD FOR {DAYS}")) == ["54000"]


def test_cursors_of_the_extended_protocol(filled: Scene) -> None:
    """As psycopg reads them: DECLARE with values, Describe of the portal, FETCH in a format."""
    with Raw.signed_in(filled) as raw:
        text = b'DECLARE c CURSOR FOR SELECT "responseTimeMs" FROM proxy_logs WHERE "userName" = $1'
        value = b"\0\0" + struct.pack("!hhi", 0, 1, 2) + b"u2" + struct.pack("!h", 0)
        raw.query("BEGIN")
        run = Message(b"E", b"\0" + bytes(4))
        raw.send(Message(b"P", b"\0" + text + b"\0\0\0"), Message(b"B", value), run, Message(b"D", b"Pc\0"))
        raw.send(Message(b"P", b"f\0FETCH 5 FROM c\0\0\0"), Message(b"D", b"Sf\0"))
        raw.send(Message(b"B", b"\0f\0" + struct.pack("!hhhh", 0, 0, 1, 1)), Message(b"D", b"P\0"), run)
        raw.send(Message(b"S"))
        answers = raw.read_all()
        assert b"".join(message.kind for message in answers) == b"12CT1tT2TDCZ"
        assert answers[9].body == struct.pack("!hiq", 1, 8, 20)
        assert answers[10].body == b"FETCH 1\0"
        # The portal without a name is open, and is no cursor.
        close = Message(b"P", b"c\0CLOSE ALL\0\0\0")
        raw.send(Message(b"B", b"\0f\0" + bytes(6)), close, Message(b"B", b"q\0c\0" + bytes(6)))
        raw.send(Message(b"E", b"q\0" + bytes(4)), Message(b"S"))
        assert b"".join(message.kind for message in raw.read_all()) == b"212CZ"
        raw.query("COMMIT")
        raw.send(Message(b"B", b"\0f\0" + bytes(6)), run, Message(b"S"))
        assert states(raw.read_all()) == ["34000"]


def test_a_semicolon_at_the_end_is_no_part_of_a_name(filled: Scene) -> None:
    with Raw.signed_in(filled) as raw:
        raw.query(f"BEGIN; DECLARE c CURSOR FOR {DAYS}")
        raw.send(Message(b"P", b"s\0SELECT day FROM proxy_logs;\0\0\0"), Message(b"S"))
        raw.read_all()
        for text, tag in (
            (b"FETCH 1 FROM c; -- one", b"FETCH 1\0"),
            (b"CLOSE c;", b"CLOSE CURSOR\0"),
            (b"DEALLOCATE s ;", b"DEALLOCATE\0"),
        ):
            raw.send(Message(b"P", b"\0" + text + bytes(3)), Message(b"B", bytes(8)))
            raw.send(Message(b"E", bytes(5)), Message(b"S"))
            assert raw.read_all()[-2] == Message(b"C", tag)
        raw.send(Message(b"B", b"\0s\0" + bytes(6)), Message(b"S"))
        assert states(raw.read_all()) == ["26000"]


def test_psycopg_reads_by_a_cursor_of_the_server(filled: Scene) -> None:
    with filled.connect(autocommit=False) as connection:
        for binary in (False, True):
            with connection.cursor("a cursor", binary=binary) as cursor:
                cursor.itersize = 4
                cursor.execute(DAYS)
                assert [milliseconds for _, milliseconds in cursor] == [0, 0, 10, 0, 10, 20]
        with connection.cursor("back", scrollable=True) as cursor:
            cursor.execute(DAYS)
            cursor.scroll(5)
            assert cursor.fetchone() == ("2026-03-03", 20)
            with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState):
                cursor.scroll(-1)
