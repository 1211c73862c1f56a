"""What a hostile or broken client may do: little, and not for long."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from uuid import UUID

import psycopg
import pytest
from django.db import connection

from accounts.access.credentials import end_pat
from accounts.access.scopes import Scope
from accounts.budgets import use_budget
from accounts.models import PersonalAccessToken
from logs import held_results, queries
from logs.cancelling import WATCH
from logs.models import QueryRun
from logs.sql.protocol import EngineUnavailable, QueryCancelled, QueryResult
from logs.wire import access, server, session, statements
from logs.wire.catalog import Backend
from logs.wire.messages import MAX_MESSAGE, Message, pack_startup
from logs.wire.statements import Failure, Statement, read_statements
from tenantadmin.lib.core.serving import UnreadBytes
from tenantadmin.lib.http.budgets import QUERY
from tests import factories
from tests.logs.wire.raw import Raw, cancel, states

if TYPE_CHECKING:
    from logs.sql.protocol import Cancellation
    from tenantadmin.lib.core.serving import Disconnection
    from tests.logs.wire.scene import Scene


@pytest.mark.parametrize(
    "startup",
    [
        struct.pack("!ii", 4, 196608),
        struct.pack("!ii", 1 << 30, 196608),
        struct.pack("!ii", -1, 196608),
        struct.pack("!ii", 9, 196608) + b"x",
        struct.pack("!ii", 8, 2 << 16),
        b"GET / HTTP/1.1\r\n\r\n",
    ],
)
def test_a_startup_that_is_malformed_ends_the_connection(scene: Scene, startup: bytes) -> None:
    with Raw(scene) as raw:
        raw.socket.sendall(startup)
        assert states(raw.read_all()) in ([], ["08P01"])


def test_what_follows_the_request_for_tls_in_plain_text_is_not_taken_for_a_startup(scene: Scene) -> None:
    with Raw(scene, tls=False) as raw:
        raw.socket.sendall(struct.pack("!ii", 8, 80877103) + pack_startup({"user": "x"}))
        assert states([raw.read()]) == ["08P01"]
        assert raw.is_closed()


def test_without_tls_nobody_is_asked_for_a_password(scene: Scene) -> None:
    with Raw(scene, tls=False) as raw:
        raw.socket.sendall(pack_startup({"user": "x", "database": scene.database}))
        assert states(raw.read_all()) == ["28000"]


def test_a_network_has_so_many_startups_at_a_time(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "STARTING_PER_NETWORK", 3)
    waiting = [Raw(scene) for _ in range(3)]
    with Raw(scene, tls=False) as refused:
        assert refused.is_closed()
    for raw in waiting:
        raw.socket.close()


def test_a_thousand_startups_that_never_end_keep_nobody_out(scene: Scene) -> None:
    """From fifty networks. Each new one ends the oldest, so that who signs in at once is served."""
    with contextlib.ExitStack() as waiting:
        for number in range(1000):
            source = f"127.0.1.{number // server.STARTING_PER_NETWORK + 1}", 0
            address = "127.0.0.1", scene.port
            waiting.enter_context(socket.create_connection(address, timeout=20, source_address=source))
        with scene.connect() as connection:
            assert connection.execute("SELECT count(*) FROM proxy_logs").fetchone() == (0,)
        assert len(scene.server._starting) <= server.STARTING


def test_a_client_that_does_not_finish_its_startup_is_closed(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "STARTUP_SECONDS", 0.2)
    with Raw(scene, tls=False) as raw:
        raw.socket.sendall(b"\0\0")
        assert raw.is_closed()


@pytest.mark.parametrize(
    ("change", "state"),
    [
        ({"password": "tas_pat_wrong"}, "28P01"),
        ({"password": ""}, "28P01"),
        ({"dbname": "7b3ab9c1-0c6e-4bd4-8d9c-000000000000"}, "42501"),
        ({"dbname": "Other"}, "3D000"),
        ({"options": "-c work_mem=1GB"}, "42501"),
        ({"options": "-c default_transaction_read_only=off"}, "42501"),
        ({"options": "-c characteristics=x"}, "42704"),
        ({"timezone": "Mars\nThe service is away"}, "22023"),
        ({"client_encoding": "latin1"}, "0A000"),
    ],
)
def test_who_may_not_connect(
    scene: Scene, change: dict[str, str], state: str, caplog: pytest.LogCaptureFixture
) -> None:
    with Raw(scene) as raw:
        options = {"user": "x", "database": change.get("dbname", scene.database)}
        options |= {name: change[name] for name in change if name not in {"dbname", "password"}}
        raw.socket.sendall(pack_startup(options))
        first = raw.read()
        if first.kind == b"R":
            raw.send(Message(b"p", change.get("password", scene.password).encode() + b"\0"))
            first = raw.read()
        assert states([first]) == [state]
    assert caplog.text == ""


def test_a_token_needs_the_scope_and_names_the_tenant(scene: Scene) -> None:
    world = scene.world
    for owner, scope, tenant in (
        (world.member, Scope.CONFIG_READ, world.tenant),
        (world.stranger, Scope.LOGS_QUERY, world.stranger_tenant),
    ):
        password = factories.pat_secret(owner, scope, tenants=[str(tenant.pk)])
        with pytest.raises(psycopg.OperationalError, match="logs:query"):
            scene.connect(password=password)


def test_the_name_of_a_tenant_is_a_database_too(scene: Scene) -> None:
    with scene.connect(dbname="Warehouse") as connection:
        assert connection.execute("SELECT count(*) FROM proxy_logs").fetchone() == (0,)


def test_tenants_of_others_do_not_hide_the_one_of_a_name(scene: Scene) -> None:
    world = scene.world
    # More than any page of them, and before it in every order.
    for number in range(40):
        account = type(world.account).objects.create(pk=UUID(int=number), name=f"Many {number}")
        type(world.tenant).objects.create(pk=UUID(int=number), account=account, name="Many")
    type(world.tenant).objects.filter(pk=world.tenant.pk).update(name="Many")
    with scene.connect(dbname="Many") as connection:
        assert connection.execute("SELECT count(*) FROM proxy_logs").fetchone() == (0,)


def test_a_revoked_token_ends_the_session_with_its_next_query(scene: Scene) -> None:
    with scene.connect() as connection:
        connection.execute("SELECT count(*) FROM proxy_logs")
        end_pat(PersonalAccessToken.objects.get(), actor="x")
        with pytest.raises(psycopg.OperationalError, match="ended"):
            connection.execute("SELECT count(*) FROM proxy_logs")
        assert connection.broken
    assert QueryRun.objects.count() == 1


def test_a_message_that_is_too_long_is_not_read(scene: Scene) -> None:
    with Raw.signed_in(scene) as raw:
        raw.socket.sendall(b"Q" + struct.pack("!i", 1 << 30))
        assert states(raw.read_all()) == ["08P01"]
        assert raw.is_closed()


def test_a_statement_has_64_kib(scene: Scene) -> None:
    with Raw.signed_in(scene) as raw:
        for text in ("SELECT 1 FROM proxy_logs --", "SELECT 1 --"):
            assert states(raw.query(text.ljust(65_537, "x"))) == ["54000"]
        assert states(raw.query("SELECT 1")) == []


@pytest.mark.parametrize(
    "message",
    [
        Message(b"P", b"name"),
        Message(b"B", b"\0\0\0\1"),
        Message(b"B", b"\0\0" + struct.pack("!hhi", 0, 1, 1 << 30)),
        Message(b"B", b"\0\0" + struct.pack("!H", 65_535)),
        Message(b"B", b"\0\0" + struct.pack("!hH", 0, 1001) + b"\xff" * 4004 + bytes(2)),
        Message(b"P", b"\0SELECT 1\0" + struct.pack("!H", 65_535)),
        Message(b"E", b"portal"),
        Message(b"!", b""),
        Message(b"F", b""),
        Message(b"Q", b"no end"),
    ],
)
def test_a_malformed_message_ends_the_session(scene: Scene, message: Message) -> None:
    with Raw.signed_in(scene) as raw:
        raw.send(message, Message(b"S"))
        assert states(raw.read_all()) == ["08P01"]


def test_statements_and_portals_have_limits(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    with Raw.signed_in(scene) as raw:
        parse = Message(b"P", b"s\0SELECT day FROM proxy_logs\0\0\0")
        binds = [Message(b"B", b"p%d\0s\0" % number + bytes(6)) for number in range(40)]
        raw.send(parse, *binds, Message(b"S"))
        assert states(raw.read_all()) == ["54000"]
        parses = [Message(b"P", b"s%d\0SELECT day FROM proxy_logs\0\0\0" % number) for number in range(600)]
        raw.send(*parses, Message(b"S"))
        assert states(raw.read_all()) == ["54000"]


def test_a_name_of_a_portal_has_a_limit(scene: Scene) -> None:
    with Raw.signed_in(scene) as raw:
        raw.send(Message(b"P", b"\0SELECT 1\0\0\0"), Message(b"B", b"x" * 64 + bytes(8)), Message(b"S"))
        assert states(raw.read_all()) == ["42622"]


class Waiting:
    """An engine whose queries last until they are cancelled, or the test is over."""

    def __init__(self) -> None:
        self.begun, self.is_over = threading.Event(), threading.Event()

    def execute(self, *, cancellation: Cancellation | None = None, statement: str, **_: object) -> object:
        if cancellation is None:
            raise EngineUnavailable
        self.begun.set()
        while not cancellation.is_cancelled() and not self.is_over.wait(0.005):
            pass
        raise QueryCancelled


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Iterator[Waiting]:
    made = Waiting()
    monkeypatch.setattr(queries, "get_engine", lambda: made)
    described = QueryResult(columns=(), batches=(), row_count=0, truncated=False)
    monkeypatch.setattr("logs.wire.access.describe_query", lambda *_, **__: described)
    yield made
    made.is_over.set()


def test_a_describe_can_be_cancelled(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Waiting()
    monkeypatch.setattr(queries, "get_engine", lambda: engine)
    with Raw.signed_in(scene) as raw:
        raw.send(Message(b"P", b"s\0SELECT day FROM proxy_logs\0\0\0"), Message(b"D", b"Ss\0"), Message(b"S"))
        assert engine.begun.wait(10)
        cancel(scene, raw.key)
        assert states(raw.read_all()) == ["57014"]
    assert QueryRun.objects.count() == 0


def test_a_query_ends_by_its_own_key_alone(scene: Scene, engine: Waiting) -> None:
    with Raw.signed_in(scene) as raw, Raw.signed_in(scene) as other:
        raw.send(Message(b"Q", b"SELECT 1 FROM proxy_logs\0"))
        assert engine.begun.wait(10)
        wrong = raw.key[:4] + bytes(4)
        for key in (other.key, wrong, b"", b"\0" * 300):
            cancel(scene, key)
        WATCH.look()
        assert QueryRun.objects.get().outcome == "running"
        cancel(scene, raw.key)
        assert states(raw.read_all()) == ["57014"]
        assert states(other.query("SELECT 1")) == []


# So much is not read any more while a query runs, and fits into the buffers of the system: behind what does
# not fit, it does not tell that the client is gone.
@pytest.mark.parametrize("behind", [0, 27_000])
def test_a_client_that_is_gone_ends_its_query(
    scene: Scene, engine: Waiting, monkeypatch: pytest.MonkeyPatch, behind: int
) -> None:
    """Also if it has sent more than is read while the query runs."""
    monkeypatch.setattr(server, "GONE_SECONDS", 0.02)
    with Raw.signed_in(scene) as raw:
        raw.send(Message(b"Q", b"SELECT 1 FROM proxy_logs\0"), *[Message(b"H")] * behind)
        assert engine.begun.wait(10)
    for _ in range(1000):
        if QueryRun.objects.filter(outcome="query_cancelled").exists():
            return
        threading.Event().wait(0.01)
    raise AssertionError


def test_a_slow_reader_keeps_no_thread_and_is_closed(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("logs.wire.messages.READ_SECONDS", 0.3)
    with Raw.signed_in(scene) as raw:
        wide = "SELECT repeat('x', 3000) FROM range(9000) UNION ALL SELECT day FROM proxy_logs"
        raw.send(Message(b"Q", wide.encode() + b"\0"))
        assert raw.read().kind == b"T"
        with scene.connect() as connection:
            assert connection.execute("SELECT count(*) FROM proxy_logs").fetchone() == (0,)
        threading.Event().wait(1)
        with pytest.raises((EOFError, ConnectionError)):
            raw.read_for_ever()


def test_the_password_is_in_no_log_line(scene: Scene, caplog: pytest.LogCaptureFixture) -> None:
    with scene.connect() as connection:
        connection.execute("SELECT count(*) FROM proxy_logs")
    with pytest.raises(psycopg.OperationalError) as refused:
        scene.connect(password=scene.password + "x")
    assert scene.password not in caplog.text + str(refused.value)
    assert MAX_MESSAGE == 1 << 20


@pytest.mark.parametrize(
    ("text", "state"),
    [
        (b"SELECT day FROM proxy_logs WHERE responseSize = $1001", "42P02"),
        (b"SELECT day FROM proxy_logs WHERE responseSize = $0", "42P02"),
        (b"SELECT day FROM proxy_logs WHERE responseSize = $" + b"9" * 5000, "42P02"),
        (b"SELECT $1001::int", "42P02"),
    ],
)
def test_a_parameter_has_a_small_number(scene: Scene, text: bytes, state: str) -> None:
    with Raw.signed_in(scene) as raw:
        raw.send(Message(b"P", b"\0" + text + b"\0\0\0"), Message(b"S"))
        assert states(raw.read_all()) == [state]


def test_a_statement_with_its_values_has_64_kib(scene: Scene) -> None:
    text = b"SELECT day FROM proxy_logs WHERE userName IN (" + b"$1," * 1000 + b"$1)"
    value = b"x" * 1000
    bind = b"\0\0" + struct.pack("!hhi", 0, 1, len(value)) + value + struct.pack("!h", 0)
    with Raw.signed_in(scene) as raw:
        raw.send(Message(b"P", b"\0" + text + b"\0\0\0"), Message(b"B", bind), Message(b"S"))
        assert states(raw.read_all()) == ["54000"]


def test_a_number_with_many_digits_is_no_value(scene: Scene) -> None:
    text = b"SELECT day FROM proxy_logs WHERE responseSize = $1"
    value = struct.pack("!HhHH", 30, 29, 0, 0) + bytes(60)
    bind = b"\0\0" + struct.pack("!hhhi", 1, 1, 1, len(value)) + value + struct.pack("!h", 0)
    with Raw.signed_in(scene) as raw:
        parse = b"\0" + text + b"\0" + struct.pack("!hI", 1, 1700)
        raw.send(Message(b"P", parse), Message(b"B", bind), Message(b"S"))
        assert states(raw.read_all()) == ["22P03"]


ROWS = "SELECT repeat('x', 1000) FROM range({}) UNION ALL SELECT day FROM proxy_logs"


@pytest.fixture
def other(scene: Scene) -> Scene:
    """The same port for another caller."""
    password = factories.pat_secret(scene.world.owner, Scope.LOGS_QUERY, tenants=[scene.database])
    return replace(scene, password=password)


def keep_at_most(size: int, monkeypatch: pytest.MonkeyPatch) -> UnreadBytes:
    """Let the rows of all callers take so many bytes. Return what counts them."""
    held = UnreadBytes(per_caller=held_results.OF_CALLER, total=size)
    monkeypatch.setattr(held_results, "_HELD", held)
    return held


def test_rows_that_others_leave_unread_make_room(
    scene: Scene, other: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The caller with most of them loses the session that has read nothing for the longest time."""
    keep_at_most(3_500_000, monkeypatch)
    with Raw.signed_in(scene) as first, Raw.signed_in(scene) as second, Raw.signed_in(other) as third:
        for raw, count in ((first, 1000), (second, 1500)):
            raw.query(f"DECLARE c CURSOR WITH HOLD FOR {ROWS.format(count)}")
        assert states(first.query("FETCH c")) == []
        assert states(third.query(ROWS.format(1200))) == ["53000"]
        assert states(third.query(ROWS.format(1200))) == []
        assert states(first.query("FETCH c")) == []
        assert states(second.read_all()) == ["53200"]


@pytest.mark.parametrize("statement", [ROWS, f"COPY ({ROWS}) TO STDOUT"])
def test_an_answer_that_is_not_read_makes_room(
    scene: Scene, other: Scene, monkeypatch: pytest.MonkeyPatch, statement: str
) -> None:
    """It, and no cursor with fewer rows."""
    wide = statement.replace("1000", "3000").format(9000)
    held = keep_at_most(29_000_000, monkeypatch)
    with Raw.signed_in(scene) as slow, Raw.signed_in(other) as paging, Raw.signed_in(other) as asking:
        paging.query(f"DECLARE c CURSOR WITH HOLD FOR {ROWS.format(100)}")
        slow.send(Message(b"Q", wide.encode() + b"\0"))
        assert slow.read().kind in {b"T", b"H"}
        assert states(asking.query(ROWS.format(3000))) == ["53000"]
        for _ in range(1000):
            if not held.of(scene.world.member.email):
                break
            threading.Event().wait(0.01)
        assert states(asking.query(ROWS.format(3000))) == []
        assert states(paging.query("FETCH c")) == []


def test_who_runs_a_query_makes_room_too(scene: Scene, other: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the query makes in the end is counted, and given back."""
    held, begun, run_query = keep_at_most(3_500_000, monkeypatch), threading.Event(), queries.run_query

    def slowly(*arguments: Any, disconnection: Disconnection, **options: Any) -> QueryResult:
        if "slow" in options["statement"]:
            begun.set()
            for _ in range(1000):
                if disconnection.happened():
                    break
                threading.Event().wait(0.005)
        return run_query(*arguments, **options)

    monkeypatch.setattr(access, "run_query", slowly)
    with Raw.signed_in(scene) as raw, Raw.signed_in(other) as asking:
        raw.query(f"DECLARE c CURSOR WITH HOLD FOR {ROWS.format(2500)}")
        raw.send(Message(b"Q", b"SELECT 'slow', count(*) FROM proxy_logs\0"))
        assert begun.wait(10)
        assert states(asking.query(ROWS.format(1200))) == ["53000"]
        assert states(raw.read_all()) == ["53200"]
        assert held.of(scene.world.member.email) == 0
        assert states(asking.query(ROWS.format(1200))) == []


def test_a_caller_has_a_part_of_the_connections(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scene.server, "_connections", 9)
    with scene.connect(), pytest.raises(psycopg.OperationalError, match="You have too many connections"):
        scene.connect()


ENDLESS = "SELECT count(*) FROM (SELECT generate_series(1, 2000000000)) a"


def wait_until(count: int) -> None:
    """Wait until so many endless statements run in the catalog server."""
    with connection.cursor() as cursor:
        for _ in range(600):
            cursor.execute("SELECT FROM pg_stat_activity WHERE query = %s AND state = 'active'", [ENDLESS])
            if cursor.rowcount == count:
                return
            threading.Event().wait(0.02)
    pytest.fail(f"{cursor.rowcount} run.")


def test_a_statement_of_a_client_that_is_gone_ends(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "GONE_SECONDS", 0.02)
    with Raw.signed_in(scene) as raw:
        raw.query("SET statement_timeout = 0")
        raw.send(Message(b"Q", f"{ENDLESS}\0".encode()))
        wait_until(1)
    wait_until(0)


def test_the_catalog_server_works_for_some_sessions_of_a_caller_at_a_time(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "QUERY", replace(QUERY, places=1))
    with Raw.signed_in(scene) as raw, Raw.signed_in(scene) as other:
        raw.send(Message(b"Q", f"{ENDLESS}\0".encode()))
        wait_until(1)
        other.send(Message(b"Q", b"SELECT 1\0"))
        (turns,) = scene.server._turns.values()
        for _ in range(600):
            if turns.catalog._waiters:
                break
            threading.Event().wait(0.02)
        assert len(turns.catalog._waiters or ()) == 1
        cancel(scene, raw.key)
        assert states(raw.read_all()) == ["57014"]
        assert states(other.read_all()) == []


def test_one_thread_at_a_time_reads_the_long_texts_of_a_caller(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Threads that compute take turns with the loop, and so with all others."""
    at_work, alone = threading.Semaphore(1), list[bool]()

    def read(text: str) -> list[Statement]:
        if threading.current_thread().name.startswith("wire"):
            alone.append(at_work.acquire(blocking=False))
            threading.Event().wait(0.05)
            if alone[-1]:
                at_work.release()
        return read_statements(text)

    monkeypatch.setattr(session, "read_statements", read)
    with contextlib.ExitStack() as stack:
        sessions = [stack.enter_context(Raw.signed_in(scene)) for _ in range(4)]
        for number, raw in enumerate(sessions):
            raw.send(Message(b"Q", f"SELECT {number} /*{'x' * 3000}*/\0".encode()))
        for raw in sessions:
            assert states(raw.read_all()) == []
    assert alone == [True] * 4


def test_a_long_text_is_cut_in_threads_alone(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """The loop, which serves all, has no more of it to look at."""
    cut = list[str]()

    def parts_of(text: str) -> Iterator[tuple[str, str]]:
        cut.append(threading.current_thread().name)
        return queries.parts_of(text)

    monkeypatch.setattr(statements, "parts_of", parts_of)
    comment = f"/*{'x' * 3000}*/"
    over_log = f"SELECT count(*) FROM public.proxy_logs WHERE userName = $1 {comment}".encode()
    bind = b"\0\0" + struct.pack("!hhi", 0, 1, 1) + b"u" + struct.pack("!h", 0)
    with Raw.signed_in(scene) as raw:
        raw.send(
            *(Message(b"P", b"\0" + over_log + b"\0\0\0"), Message(b"D", b"S\0"), Message(b"B", bind)),
            *(Message(b"E", b"\0" + bytes(4)), Message(b"S")),
        )
        assert states(raw.read_all()) == []
        assert states(raw.query(f"SELECT 1 {comment}; COPY (SELECT day FROM proxy_logs) TO STDOUT")) == []
    assert len(cut) == 5
    assert all(name.startswith("wire") for name in cut)


def test_a_connection_to_the_catalog_server_is_closed_also_if_the_port_stops_meanwhile(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The port is stopped while it asks the catalog server to end a statement."""
    closed = list[Backend]()
    close = Backend.close

    def note(backend: Backend) -> None:
        closed.append(backend)
        close(backend)

    async def ask_until_stopped(_: Backend) -> None:
        await asyncio.Event().wait()

    async def stop(backend: Backend) -> None:
        ending = asyncio.create_task(server._end(backend))
        await asyncio.sleep(0)
        ending.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await ending

    monkeypatch.setattr(Backend, "close", note)
    monkeypatch.setattr(Backend, "cancel", ask_until_stopped)

    async def run() -> Backend:
        backend = await Backend.connect(scene.catalog, {})
        await backend.send(Message(b"Q", b"SELECT 1\0"))
        await stop(backend)
        return backend

    assert closed == [asyncio.run(run())]


def test_a_cancellation_of_nothing_asks_nobody(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    with Raw.signed_in(scene) as raw:
        raw.query("SELECT 1")
        monkeypatch.setattr(Backend, "cancel", asked.append)
        cancel(scene, raw.key)
        assert asked == []
        assert states(raw.query("SELECT 1")) == []


def test_a_revoked_token_ends_the_use_of_the_catalog_too(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("logs.wire.session._RIGHTS_SECONDS", 0)
    with scene.connect() as connection:
        connection.execute("SELECT 1")
        end_pat(PersonalAccessToken.objects.get(), actor="x")
        with pytest.raises(psycopg.OperationalError):
            connection.execute("SELECT 1")


def test_a_revoked_token_ends_a_session_that_asks_nothing(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("logs.wire.session._RIGHTS_SECONDS", 0)
    with Raw.signed_in(scene) as raw:
        end_pat(PersonalAccessToken.objects.get(), actor="x")
        raw.send(Message(b"H"))
        assert states(raw.read_all()) == ["28000"]


@pytest.mark.parametrize("statement", ["SELECT 1", "SELECT count(*) FROM proxy_logs"])
def test_new_terms_of_service_end_the_session(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, statement: str
) -> None:
    monkeypatch.setattr("logs.wire.session._RIGHTS_SECONDS", 0)
    with scene.connect(autocommit=True) as connection:
        connection.execute(statement.encode())
        monkeypatch.setattr("logs.wire.access.must_acknowledge", lambda _: True)
        with pytest.raises(psycopg.OperationalError, match="Acknowledge the active terms of service"):
            connection.execute(statement.encode())
        assert connection.broken


@pytest.fixture
def paid(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What clients pay, in seconds."""
    seconds_of: list[float] = []
    monkeypatch.setattr("logs.wire.access.Caller.pay", lambda _, seconds: seconds_of.append(seconds))
    return seconds_of


def test_what_the_catalog_server_works_is_paid(
    scene: Scene, paid: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("logs.wire.session._UNPAID_SECONDS", 0)
    with Raw.signed_in(scene) as raw:
        for _ in range(3):
            raw.query("SELECT 1")
    assert len([seconds for seconds in paid if seconds > 0.0002]) >= 2


@pytest.mark.parametrize("before", [Message(b"H"), Message(b"P", b"\0LISTEN x\0\0\0")])
def test_messages_that_ask_nothing_are_paid(scene: Scene, paid: list[float], before: Message) -> None:
    with Raw.signed_in(scene) as raw:
        raw.send(before, *[Message(b"H")] * 2100, Message(b"S"))
        raw.read_all()
        assert len([seconds for seconds in paid if seconds > 0.1]) == 2
        paid.clear()
        raw.send(*[Message(b"d", bytes(60_000))] * 4, Message(b"S"))
        raw.read_all()
        assert len([seconds for seconds in paid if seconds > 0.1]) == 2


def test_each_statement_of_a_message_is_paid(scene: Scene, paid: list[float]) -> None:
    with Raw.signed_in(scene) as raw:
        raw.query("DECLARE c CURSOR WITH HOLD FOR SELECT 1 FROM proxy_logs LIMIT 0")
        paid.clear()
        assert states(raw.query("MOVE c;" * 2100)) == []
        # Once more if it took long to read the text.
        assert len([seconds for seconds in paid if seconds > 0.1]) in {2, 3}


def test_what_is_prepared_is_described_and_sent_within_the_budget(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.CALLER_BUDGETS = {**settings.CALLER_BUDGETS, "query": "1 per hour"}
    statement = b"SELECT i FROM range(9) t(i), (SELECT count(*) FROM proxy_logs)"
    parse, bind = Message(b"P", b"s\0" + statement + bytes(3)), Message(b"B", b"\0s\0" + bytes(6))
    page = Message(b"E", b"\0" + struct.pack("!i", 1))
    with Raw.signed_in(scene) as raw:
        raw.query("BEGIN")
        raw.send(parse, bind, page, Message(b"S"))
        assert states(raw.read_all()) == []
        use_budget(QUERY, caller=scene.world.member.email, seconds=2)
        monkeypatch.setattr("logs.wire.session._UNPAID_SECONDS", 0)
        for message in (Message(b"D", b"Ss\0"), page):
            raw.send(message, Message(b"S"))
            assert states(raw.read_all()) == ["53400"]


def test_a_bind_names_no_more_formats_than_a_result_has_columns(scene: Scene) -> None:
    with Raw.signed_in(scene) as raw:
        raw.send(Message(b"B", bytes(6) + struct.pack("!H2001h", 2001, *[1] * 2001)), Message(b"S"))
        assert states(raw.read_all()) == ["08P01"]


def test_the_catalog_server_works_within_the_budget(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.CALLER_BUDGETS = {**settings.CALLER_BUDGETS, "query": "1 per hour"}
    monkeypatch.setattr("logs.wire.session._UNPAID_SECONDS", 0)
    with Raw.signed_in(scene) as raw:
        assert states(raw.query("SELECT 1")) == []
        use_budget(QUERY, caller=scene.world.member.email, seconds=2)
        for _ in range(2):
            assert states(raw.query("SELECT 1")) == ["53400"]
        # A session goes on, and its transaction can end, when there is a budget again.
        settings.CALLER_BUDGETS = {**settings.CALLER_BUDGETS, "query": "1000 per hour"}
        assert states(raw.query("ROLLBACK")) == []


def test_a_cursor_ends_with_the_rights(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("logs.wire.session._RIGHTS_SECONDS", 0)
    with Raw.signed_in(scene) as raw:
        assert (
            states(raw.query("DECLARE c CURSOR WITH HOLD FOR SELECT i FROM range(9) t(i), proxy_logs")) == []
        )
        end_pat(PersonalAccessToken.objects.get(), actor="x")
        assert states(raw.query("FETCH 1 FROM c")) == ["28000"]


def test_many_fetches_are_paid_and_can_be_cancelled(
    scene: Scene, paid: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("logs.wire.session._UNPAID_SECONDS", 0)
    columns = ", ".join(f"{number} AS c{number}" for number in range(50))
    with Raw.signed_in(scene) as raw:
        rows = "range(600), (SELECT count(*) FROM proxy_logs)"
        declared = f"DECLARE c CURSOR WITH HOLD FOR SELECT {columns} FROM {rows}"
        assert states(raw.query(declared)) == []
        paid.clear()
        assert states(raw.query("FETCH 1 FROM c; FETCH 1 FROM c; FETCH 1 FROM c")) == []
        assert len([seconds for seconds in paid if seconds]) >= 2

        def stop(_: object, seconds: float) -> None:
            paid.append(seconds)
            if len(paid) == 3:
                cancel(scene, raw.key)

        raw.query("CLOSE c")
        assert states(raw.query(declared)) == []
        monkeypatch.setattr("logs.wire.access.Caller.pay", stop)
        paid.clear()
        many = raw.query(";".join(["FETCH 1 FROM c"] * 500))
        assert states(many) == ["57014"]
        assert len(paid) == 3


def test_what_a_client_leaves_unpaid_is_paid_when_it_is_gone(scene: Scene, paid: list[float]) -> None:
    with Raw.signed_in(scene) as raw:
        raw.query("SELECT pg_catalog.length(repeat('x', 1000000))")
    for _ in range(500):
        if len(paid) == 2:
            break
        threading.Event().wait(0.02)
    assert 0 < paid[0] < paid[1]


def test_types_that_are_asked_for_are_paid(
    scene: Scene, paid: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("logs.wire.session._UNPAID_SECONDS", 0)
    with Raw.signed_in(scene) as raw:
        for _ in range(2):
            text = b"SELECT count(*) FROM proxy_logs WHERE day = $1"
            raw.send(Message(b"P", b"\0" + text + b"\0\0\0"), Message(b"S"))
            assert states(raw.read_all()) == []
    assert len(paid) >= 2
    assert paid[1] > 0


def test_encryption_is_asked_for_once(scene: Scene) -> None:
    """A client that asked again and again kept all others waiting, before it had signed in."""
    with Raw(scene, tls=False) as raw:
        raw.socket.sendall(struct.pack("!ii", 8, 80877104) * 2)
        assert raw.socket.recv(1) == b"N"
        assert states(raw.read_all()) == ["08P01"]


def test_cursors_and_portals_of_the_catalog_are_few(scene: Scene) -> None:
    with Raw.signed_in(scene) as raw:
        held = "DECLARE c CURSOR WITH HOLD FOR SELECT 1"
        assert states(raw.query(f"BEGIN; {held}")) == ["0A000"]
        raw.query("ROLLBACK")
        raw.send(Message(b"P", b"s\0SELECT 1\0\0\0"))
        for number in range(33):
            raw.send(Message(b"B", f"p{number}\0s\0".encode() + bytes(6)))
        raw.send(Message(b"S"))
        assert states(raw.read_all()) == ["54000"]
        raw.send(Message(b"C", b"Xs\0"))
        assert states(raw.read_all()) == ["08P01"]


def run(raw: Raw, text: str) -> list[Message]:
    """Run a statement by the extended protocol."""
    parse, bind = Message(b"P", b"\0" + text.encode() + bytes(3)), Message(b"B", bytes(8))
    raw.send(parse, bind, Message(b"E", bytes(5)), Message(b"S"))
    return raw.read_all()


def test_an_end_is_asked_for_within_the_budget_too(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.CALLER_BUDGETS = {**settings.CALLER_BUDGETS, "query": "1 per hour"}
    monkeypatch.setattr("logs.wire.session._UNPAID_SECONDS", 0)
    with Raw.signed_in(scene) as raw:
        raw.query("BEGIN")
        use_budget(QUERY, caller=scene.world.member.email, seconds=2)
        assert states(raw.query("SELECT 1")) == ["53400"]
        monkeypatch.setattr("logs.wire.session._UNPAID_SECONDS", 60)
        for statement in ("COMMIT", "ROLLBACK", "CLOSE ALL", "DEALLOCATE ALL", "DISCARD ALL"):
            for answer in (raw.query(statement), raw.query("SELECT 1"), run(raw, statement)):
                assert states(answer) == ["53400"]
                # Nothing was done: the transaction lasts.
                assert answer[-1] == Message(b"Z", b"T")
        settings.CALLER_BUDGETS = {**settings.CALLER_BUDGETS, "query": "1000 per hour"}
        assert [message.kind for message in run(raw, "COMMIT")] == [b"1", b"2", b"C", b"Z"]
        assert raw.query("SELECT 1")[-1] == Message(b"Z", b"I")


def test_an_answer_is_sent_whole_also_if_it_used_up_the_budget(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    monkeypatch.setattr("logs.wire.session._UNPAID_SECONDS", 0)
    original = access.Caller.query

    def costly(caller: access.Caller, *arguments: Any, **options: Any) -> Any:
        result = original(caller, *arguments, **options)
        settings.CALLER_BUDGETS = {**settings.CALLER_BUDGETS, "query": "1 per hour"}
        use_budget(QUERY, caller=scene.world.member.email, seconds=2)
        return result

    monkeypatch.setattr(access.Caller, "query", costly)
    with Raw.signed_in(scene) as raw:
        answer = raw.query("SELECT 1 FROM range(9000), (SELECT count(*) FROM proxy_logs)")
        assert states(answer) == []
        assert sum(message.kind == b"D" for message in answer) == 9000


def test_what_fails_in_the_catalog_uncounts_nothing(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("logs.wire.session._MAX_STATEMENTS", 2)
    with Raw.signed_in(scene) as raw:
        assert states(raw.query("PREPARE a AS SELECT 1; PREPARE b AS SELECT 1")) == []
        assert states(raw.query("BEGIN; DISCARD ALL")) == ["25001"]
        raw.query("ROLLBACK")
        assert states(raw.query("PREPARE c AS SELECT 1")) == ["54000"]
        assert states(raw.query("DEALLOCATE a; PREPARE c AS SELECT 1")) == []


@pytest.mark.parametrize("ask", [Raw.query, run])
def test_what_the_catalog_server_keeps_has_limits(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, ask: Callable[[Raw, str], list[Message]]
) -> None:
    monkeypatch.setattr("logs.wire.session._MAX_STATEMENTS", 3)
    monkeypatch.setattr("logs.wire.session._MAX_PORTALS", 3)
    with Raw.signed_in(scene) as raw:
        # Each makes one of a kind, then what makes room for one, then what ends all.
        for make, end, end_all in (
            ("PREPARE {} AS SELECT 1", "DEALLOCATE {}", "DEALLOCATE ALL"),
            ("DECLARE {} CURSOR FOR SELECT 1", "CLOSE {}", "CLOSE ALL"),
            ("SAVEPOINT {}", "RELEASE SAVEPOINT {}", "ROLLBACK; BEGIN"),
        ):
            raw.query("BEGIN")
            # A statement and a portal without a name count.
            made = [name for name in "abcd" if not states(ask(raw, make.format(name)))]
            assert made in (["a", "b"], ["a", "b", "c"])
            raw.query("ROLLBACK; BEGIN")
            raw.query("DEALLOCATE ALL")
            for name in made[:2]:
                assert states(raw.query(make.format(name))) == []
            assert states(ask(raw, end.format("b"))) == []
            assert states(raw.query(make.format("b"))) == []
            assert states(raw.query(end_all)) == []
            for name in made[:2]:
                assert states(raw.query(make.format(name))) == []
            raw.query("ROLLBACK; DISCARD ALL")


def test_the_statement_without_a_name_outlives_the_others(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("logs.wire.session._MAX_STATEMENTS", 2)
    with Raw.signed_in(scene) as raw:
        raw.query("BEGIN")
        raw.send(Message(b"P", b"d\0DEALLOCATE ALL\0\0\0"), Message(b"B", b"d\0d\0" + bytes(6)))
        raw.send(Message(b"P", b"\0SAVEPOINT a\0\0\0"), Message(b"E", b"d\0" + bytes(4)))
        raw.send(*[Message(b"B", bytes(8)), Message(b"E", bytes(5))] * 3, Message(b"S"))
        answer = raw.read_all()
        assert b"".join(message.kind for message in answer) == b"121C2C2C2EZ"
        assert states(answer) == ["54000"]


def test_connections_that_are_being_made_count(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scene.server, "_connections", 10)
    connect = scene.server._connect
    reached = threading.Semaphore(0)

    async def slowly(options: Any) -> Any:
        reached.release()
        await asyncio.sleep(0.5)
        return await connect(options)

    monkeypatch.setattr(scene.server, "_connect", slowly)
    outcomes: list[bool] = []

    def sign_in() -> None:
        with Raw.signed_in(scene) as raw:
            outcomes.append(bool(raw.key))
            closing.wait()

    closing = threading.Event()
    threads = [threading.Thread(target=sign_in) for _ in range(5)]
    for thread in threads:
        thread.start()
    for _ in range(1000):
        if len(outcomes) == 5:
            break
        threading.Event().wait(0.02)
    closing.set()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == [False, False, False, True, True]


def test_rows_that_are_not_read_are_not_kept_by_other_messages(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("logs.wire.session.UNREAD_SECONDS", 0.3)
    with Raw.signed_in(scene) as raw:
        raw.query("DECLARE c CURSOR WITH HOLD FOR SELECT 1 FROM range(9), (SELECT count(*) FROM proxy_logs)")
        for _ in range(40):
            raw.send(Message(b"S"))
            answer = raw.read_all()
            if states(answer):
                break
            threading.Event().wait(0.05)
        assert states(answer) == ["57P05"]


def test_rows_that_are_not_read_are_not_kept_by_messages_that_wait(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There was no wait for such a message, and so no end of the time."""
    monkeypatch.setattr("logs.wire.session.UNREAD_SECONDS", 0)
    declared = "DECLARE c CURSOR WITH HOLD FOR SELECT 1 FROM range(9), (SELECT count(*) FROM proxy_logs)"
    with Raw.signed_in(scene) as raw:
        raw.send(Message(b"Q", declared.encode() + b"\0"), *[Message(b"S")] * 9)
        assert states(raw.read_all()) == []
        assert states(raw.read_all()) == ["57P05"]


@pytest.mark.parametrize("text", ["SELECT $0", "COPY proxy_logs", "DECLARE c"])
def test_a_refusal_keeps_none_of_the_parts_of_a_statement(text: str) -> None:
    """They take a hundred times what the text takes."""
    (statement,) = read_statements(text)
    refusals = [known for known in (statement.parameters, statement.action) if isinstance(known, Failure)]
    assert [refusal.__traceback__ for refusal in refusals] == [None]


@pytest.mark.parametrize(
    "statement", ["SET datestyle.a1 = 'x'", "SET SESSION timezone.x TO 'y'", "SET LOCAL geqo . a = 1"]
)
def test_a_setting_of_the_clients_own_is_refused(scene: Scene, statement: str) -> None:
    with Raw.signed_in(scene) as raw:
        assert states(raw.query(statement)) == ["42501"]
        assert states(raw.query("SET timezone TO 'Europe/Berlin'; SET statement_timeout = 1000")) == []


def test_statements_that_sql_prepares_count(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("logs.wire.session._MAX_STATEMENT_BYTES", 100)
    with Raw.signed_in(scene) as raw:
        texts = [f"PREPARE p{number} AS SELECT {number} AS a_long_name_of_a_column" for number in range(4)]
        assert [states(raw.query(text)) for text in texts] == [[], [], [], ["54000"]]
        # A statement that is only prepared ends none.
        raw.send(Message(b"P", b"d\0DEALLOCATE ALL\0\0\0"), Message(b"S"))
        raw.read_all()
        assert states(raw.query(texts[3])) == ["54000"]
        assert states(raw.query("DEALLOCATE ALL")) == []
        assert states(raw.query(texts[3])) == []


def test_connections_have_a_limit(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scene.server, "_connections", 1)
    with scene.connect(), pytest.raises(psycopg.OperationalError, match="Too many clients"):
        scene.connect()


def test_without_the_catalog_server_nobody_connects(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = type(scene.catalog)("/nonexistent", 1, "x", "x")
    monkeypatch.setattr(scene.server, "_catalog", gone)
    with pytest.raises(psycopg.OperationalError, match="catalog server is away"):
        scene.connect()


DROP = ("DROP DATABASE {name} WITH (FORCE)",)


@pytest.mark.parametrize(
    "losses",
    [
        (*DROP, "DROP ROLE {name}"),
        DROP,
        (*DROP, "CREATE DATABASE {name}"),
        ("ALTER ROLE {name} NOLOGIN",),
    ],
)
def test_a_catalog_that_is_lost_is_made_again(scene: Scene, losses: tuple[str, ...]) -> None:
    with scene.connect() as other:
        other.execute("SELECT 1")
        with connection.cursor() as cursor:
            for loss in losses:
                cursor.execute(loss.format(name=scene.catalog.database))
        with scene.connect() as again:
            assert again.execute(
                "SELECT relname FROM pg_class WHERE relname ~ '^proxy' ORDER BY 1"
            ).fetchall() == [
                ("proxy_logs",),
                ("proxy_logs_time",),
            ]
            assert again.execute("SHOW statement_timeout").fetchone() == ("10s",)
