"""The front: bodies with a deadline, environments, responses, without a server and without Django."""

from __future__ import annotations

import asyncio
import selectors
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenantadmin.lib.core.errors import BadRequest, RequestTimeout, ServiceBusy
from tenantadmin.lib.core.serving import (
    CALLER_KEY,
    REFUSAL_KEY,
    UnreadBytes,
    disconnection_of,
    unread_bytes_of,
)
from tenantadmin.run.front.answers import PIECE_BYTES, AnswerLimits, Answers, cut
from tenantadmin.run.front.application import Front, Threads, make_environ
from tenantadmin.run.front.bodies import BodyLimits, BodyReceiver, BodyTooLarge

T = TypeVar("T")

LIMITS = BodyLimits(max_bytes=10_000, seconds=0.4, first_seconds=0.1, drain_bytes=3000, drain_seconds=0.2)
DISCONNECT: dict[str, Any] = {"type": "http.disconnect"}


def piece(body: bytes, *, more: bool = True) -> dict[str, Any]:
    return {"type": "http.request", "body": body, "more_body": more}


def scope(*headers: tuple[bytes, bytes], path: bytes = b"/x", query: bytes = b"") -> dict[str, Any]:
    return {
        "type": "http",
        "method": "POST",
        "http_version": "1.1",
        "raw_path": path,
        "query_string": query,
        "scheme": "http",
        "server": ("127.0.0.1", "8000"),
        "client": ("192.0.2.7", "5000"),
        "headers": list(headers),
    }


class _Jumping(selectors.SelectSelector):
    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        found = super().select(0)
        if not found:
            self.now += timeout or 0
        return found


class JumpingLoop(asyncio.SelectorEventLoop):
    """A loop whose clock jumps to the next timer, so that no machine is too slow for it.

    While a thread works, all timers are over at once.
    """

    def __init__(self) -> None:
        self._jumping = _Jumping()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now


def run_jumping(task: Coroutine[Any, Any, T]) -> T:
    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        return runner.run(task)


class Client:
    """Sends messages, each after a pause in seconds, then keeps the connection open; keeps the responses."""

    def __init__(self, *messages: dict[str, Any] | tuple[float, dict[str, Any]]) -> None:
        self.messages = [message if isinstance(message, tuple) else (0.0, message) for message in messages]
        self.sent: list[dict[str, Any]] = []
        self.read = 0

    async def receive(self) -> dict[str, Any]:
        if not self.messages:
            await asyncio.Event().wait()
        pause, message = self.messages.pop(0)
        await asyncio.sleep(pause)
        self.read += len(message.get("body", b""))
        return message

    async def send(self, message: dict[str, Any]) -> None:
        self.sent.append(message)

    @property
    def body(self) -> bytes:
        return b"".join(message["body"] for message in self.sent[1:])


def receive(client: Client, *, declared: int | None, receiver: BodyReceiver | None = None) -> bytes:
    async def run() -> bytes:
        with (receiver or BodyReceiver(LIMITS)).body() as body:
            return await body.receive(client.receive, declared=declared)

    return run_jumping(run())


def seconds_until_refused(client: Client, *, declared: int | None) -> float:
    async def run() -> float:
        with BodyReceiver(LIMITS).body() as body, pytest.raises(RequestTimeout):
            await body.receive(client.receive, declared=declared)
        return asyncio.get_running_loop().time()

    return run_jumping(run())


class TestBodies:
    def test_a_body_in_pieces_is_joined(self) -> None:
        assert receive(Client(piece(b"ab"), piece(b"c"), piece(b"", more=False)), declared=None) == b"abc"

    def test_a_declared_length_ends_the_body(self) -> None:
        assert receive(Client(piece(b"ab"), piece(b"c")), declared=3) == b"abc"

    @pytest.mark.parametrize("declared", [1000, None])
    def test_a_body_that_stops_is_refused_after_the_first_seconds(self, declared: int | None) -> None:
        assert seconds_until_refused(Client(piece(b"{")), declared=declared) == pytest.approx(0.1, abs=0.01)

    def test_bytes_that_trickle_do_not_prolong_the_deadline(self) -> None:
        client = Client(*[(0.03, piece(b"x"))] * 100)
        assert seconds_until_refused(client, declared=1000) == pytest.approx(0.1, abs=0.01)

    def test_a_body_that_makes_progress_has_the_whole_time(self) -> None:
        client = Client(piece(b"x" * 1024), (0.25, piece(b"y")))
        assert receive(client, declared=1025) == b"x" * 1024 + b"y"

    def test_no_body_has_more_than_the_whole_time(self) -> None:
        client = Client(*[(0.05, piece(b"x" * 1024))] * 100)
        assert seconds_until_refused(client, declared=None) == pytest.approx(0.4)

    @pytest.mark.parametrize(
        ("declared", "size", "read"),
        [(10_001, 10_001, 0), (None, 12_000, 12_000)],
        ids=["declared", "chunked"],
    )
    def test_a_large_body_is_refused_as_soon_as_that_is_known(
        self, declared: int | None, size: int, read: int
    ) -> None:
        client = Client(*[piece(b"x" * 4000)] * 10)
        with pytest.raises(BodyTooLarge) as caught:
            receive(client, declared=declared)
        assert (caught.value.size, client.read) == (size, read)

    def test_a_body_of_exactly_the_limit_is_received(self) -> None:
        assert len(receive(Client(piece(b"x" * 10_000, more=False)), declared=None)) == 10_000

    def test_a_connection_that_ends_early_is_a_bad_request(self) -> None:
        with pytest.raises(BadRequest, match=r"^The body ended before its declared length\.$"):
            receive(Client(piece(b"x"), DISCONNECT), declared=2)

    def test_bodies_take_a_bounded_amount_of_memory_until_they_are_answered(self) -> None:
        async def run() -> list[int]:
            receiver = BodyReceiver(BodyLimits(max_bytes=100, held_bytes=150))
            full = Client(piece(b"x" * 100)), Client(piece(b"x" * 100)), Client(piece(b"x" * 100))
            with receiver.body() as first:
                await first.receive(full[0].receive, declared=100)
                with receiver.body() as second, pytest.raises(ServiceBusy):
                    await second.receive(full[1].receive, declared=100)
            with receiver.body() as third:
                return [len(await third.receive(full[2].receive, declared=100))]

        assert asyncio.run(run()) == [100]

    @pytest.mark.parametrize(
        ("messages", "drained"),
        [
            ([piece(b"x" * 1000), piece(b"x", more=False)], 1001),
            ([piece(b"x" * 1000), DISCONNECT], 1000),
            ([piece(b"x" * 1000)] * 9, 3000),
            ([(0.06, piece(b"x"))] * 100, 3),
        ],
        ids=["end", "disconnect", "bytes", "seconds"],
    )
    def test_the_rest_of_a_large_body_is_drained_within_limits(
        self, messages: list[Any], drained: int
    ) -> None:
        client = Client(*messages)

        async def run() -> None:
            with BodyReceiver(LIMITS).body() as body:
                await body.drain(client.receive)

        run_jumping(run())
        assert client.read == drained


class TestEnvironment:
    def test_the_environ_has_the_fields_of_the_request(self) -> None:
        environ = make_environ(
            scope(
                (b"host", b"example.com"),
                (b"content-type", b"application/json"),
                (b"content-length", b"2"),
                (b"x-forwarded-for", b"192.0.2.1"),
                (b"x-forwarded-for", b"192.0.2.2"),
                (b"cookie", b"a=1"),
                (b"cookie", b"b=2"),
                path=b"/users/j%C3%B6rg%2Fx",
                query=b"a=%20",
            )
        )
        assert environ.pop("wsgi.input").read() == b""
        assert {key: value for key, value in environ.items() if not key.startswith("wsgi.")} == {
            "SCRIPT_NAME": "",
            "REQUEST_METHOD": "POST",
            "PATH_INFO": "/users/jörg/x".encode().decode("latin-1"),
            "QUERY_STRING": "a=%20",
            "SERVER_PROTOCOL": "HTTP/1.1",
            "SERVER_NAME": "127.0.0.1",
            "SERVER_PORT": "8000",
            "REMOTE_ADDR": "192.0.2.7",
            "HTTP_HOST": "example.com",
            "CONTENT_TYPE": "application/json",
            "CONTENT_LENGTH": "2",
            "HTTP_X_FORWARDED_FOR": "192.0.2.1,192.0.2.2",
            "HTTP_COOKIE": "a=1; b=2",
        }

    def test_a_name_with_an_underscore_does_not_pass_for_one_with_a_hyphen(self) -> None:
        environ = make_environ(scope((b"x_forwarded_for", b"192.0.2.9"), (b"x-real", b"1")))
        assert [key for key in environ if key.startswith("HTTP_")] == ["HTTP_X_REAL"]


class TestThreads:
    def test_a_thread_is_started_only_while_all_others_are_busy(self) -> None:
        async def run() -> tuple[int, int]:
            threads = Threads(2)
            in_turn = [await threads.run(threading.get_ident) for _ in range(5)]
            barrier = threading.Barrier(2)

            def meet() -> int:
                barrier.wait(10)
                return threading.get_ident()

            at_once = await asyncio.gather(*(threads.run(meet) for _ in range(6)))
            return len(set(in_turn)), len(set(at_once))

        assert asyncio.run(run()) == (1, 2)

    def test_the_thread_that_became_idle_last_takes_the_next_function(self) -> None:
        async def run() -> tuple[int, list[int]]:
            threads = Threads(3)
            doors = [threading.Event() for _ in range(3)]

            def through(door: threading.Event) -> int:
                assert door.wait(10)
                return threading.get_ident()

            pending = [threads.run(partial(through, door)) for door in doors]
            for number in (2, 0, 1):
                doors[number].set()
                last = await pending[number]
            return last, [await threads.run(threading.get_ident) for _ in range(5)]

        last, following = asyncio.run(run())
        assert following == [last] * 5

    def test_an_error_is_raised_to_the_awaiter_and_the_thread_keeps_working(self) -> None:
        async def run() -> int:
            threads = Threads(1)
            with pytest.raises(SystemExit):
                await threads.run(lambda: sys.exit(3))
            return await threads.run(lambda: 7)

        assert asyncio.run(run()) == 7


def app(answer: Callable[[dict[str, Any]], Iterable[bytes]]) -> Any:
    def application(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        start_response("200 OK", [("Content-Type", "text/plain")])
        return answer(environ)

    return application


def make_front(
    application: Any, *, threads: int = 1, bodies: BodyLimits = LIMITS, unread: int = 1 << 20, **limits: Any
) -> Front:
    """``unread``: how many bytes are kept for a caller."""
    answers = Answers(AnswerLimits(**limits), UnreadBytes(per_caller=unread, total=2 * unread))
    return Front(application, threads=threads, limits=bodies, answers=answers)


def ask(front: Front, client: Client, *headers: tuple[bytes, bytes]) -> None:
    run_jumping(front(scope(*headers), client.receive, client.send))


def echo(environ: dict[str, Any]) -> list[bytes]:
    refusal = environ.get(REFUSAL_KEY)
    text = refusal.code.encode() if refusal else environ["wsgi.input"].read()
    return [environ.get("CONTENT_LENGTH", "-").encode(), b" ", text]


class TestFront:
    @pytest.mark.parametrize(
        ("headers", "messages", "body", "closes"),
        [
            ([], [], b"- ", False),
            ([(b"content-length", b"0")], [], b"0 ", False),
            ([(b"content-length", b"2")], [piece(b"hi")], b"2 hi", False),
            ([(b"transfer-encoding", b"chunked")], [piece(b"hi"), piece(b"", more=False)], b"2 hi", False),
            ([(b"content-length", b"2")], [piece(b"h")], b"0 request_timeout", True),
            ([(b"content-length", b"2")], [DISCONNECT], b"0 bad_request", True),
            ([(b"content-length", b"10001")], [DISCONNECT], b"10001 ", True),
        ],
        ids=["none", "empty", "declared", "chunked", "slow", "cut", "large"],
    )
    def test_the_application_gets_the_whole_body_or_the_reason(
        self, headers: list[tuple[bytes, bytes]], messages: list[Any], body: bytes, closes: bool
    ) -> None:
        client = Client(*messages)
        ask(make_front(app(echo)), client, *headers)
        assert client.body == body
        assert client.sent[0] == {
            "type": "http.response.start",
            "status": 200,
            "headers": [(b"content-type", b"text/plain")] + [(b"connection", b"close")] * closes,
        }

    def test_slow_bodies_take_no_thread(self) -> None:
        async def run() -> None:
            front = make_front(app(echo), bodies=replace(LIMITS, seconds=60, first_seconds=60))
            length = (b"content-length", b"1000")
            slow = [Client(piece(b"{")) for _ in range(100)]
            tasks = [
                asyncio.create_task(front(scope(length), client.receive, client.send)) for client in slow
            ]
            while any(client.messages for client in slow):
                await asyncio.sleep(0)
            fast = Client()
            await asyncio.wait_for(front(scope(), fast.receive, fast.send), 10)
            assert fast.body == b"- "
            assert not any(task.done() for task in tasks)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

        asyncio.run(run())

    def test_a_long_response_is_sent_in_pieces_and_closed_in_its_own_thread(self) -> None:
        threads: list[int] = []
        size = PIECE_BYTES * 3 // 5

        class Response:
            def __iter__(self) -> Iterator[bytes]:
                for number in range(5):
                    threads.append(threading.get_ident())
                    yield b"%d" % number * size

            def close(self) -> None:
                threads.append(threading.get_ident())

        client = Client()
        ask(make_front(app(lambda _: Response()), threads=2), client)
        assert [len(message["body"]) for message in client.sent[1:]] == [size] * 5
        assert [message.get("more_body", False) for message in client.sent[1:]] == [True] * 4 + [False]
        assert client.body == b"".join(b"%d" % number * size for number in range(5))
        assert len(threads) == 6
        assert len(set(threads)) == 1

    def test_a_response_ends_when_the_client_is_gone(self) -> None:
        class Leaving(Client):
            async def receive(self) -> dict[str, Any]:
                while len(self.sent) < 4:
                    await asyncio.sleep(0.01)
                return DISCONNECT

        def endless(_: dict[str, Any]) -> Iterator[bytes]:
            while True:
                yield b"x" * PIECE_BYTES

        client = Leaving()
        asyncio.run(asyncio.wait_for(make_front(app(endless))(scope(), client.receive, client.send), 10))
        assert len(client.sent) >= 4

    def test_a_response_ends_when_the_client_does_not_read(self) -> None:
        closed = []

        class Response:
            def __iter__(self) -> Iterator[bytes]:
                for _ in range(10):
                    yield b"x" * PIECE_BYTES

            def close(self) -> None:
                closed.append(1)

        client = Client(piece(b"", more=False))
        front = make_front(app(lambda _: Response()), stall_seconds=0.1)

        async def send(message: dict[str, Any]) -> None:
            if len(client.sent) == 3:
                await asyncio.sleep(60)
            await client.send(message)

        run_jumping(front(scope(), client.receive, send))
        assert len(client.sent) == 3
        assert closed == [1]

    def test_the_thread_hears_that_the_client_is_gone(self) -> None:
        heard: list[float] = []

        def wait(environ: dict[str, Any]) -> list[bytes]:
            gone = threading.Event()
            started = time.monotonic()
            with disconnection_of(environ).calling(gone.set):
                assert gone.wait(5)
            heard.append(time.monotonic() - started)
            return []

        client = Client(piece(b"hi"), (0.05, DISCONNECT))
        ask(make_front(app(wait)), client, (b"content-length", b"2"))
        assert 0.0 < heard[0] < 2

    def test_without_a_body_the_connection_is_watched_once_the_thread_asks(self) -> None:
        def wait(environ: dict[str, Any]) -> list[bytes]:
            connection = disconnection_of(environ)
            until = time.monotonic() + 5
            while not connection.happened():
                assert time.monotonic() < until
                time.sleep(0.01)
            return []

        client = Client(piece(b"", more=False), (0.05, DISCONNECT))
        ask(make_front(app(wait)), client)
        assert client.messages == []

    def test_a_request_that_nothing_asks_about_is_not_watched(self) -> None:
        client = Client(piece(b"", more=False))
        ask(make_front(app(lambda _: [b"fine"])), client)
        assert len(client.messages) == 1

    def test_a_failing_application_is_a_failure_of_the_request_alone(self) -> None:
        def fail(environ: dict[str, Any]) -> list[bytes]:
            if environ["PATH_INFO"] == "/x":
                raise ZeroDivisionError
            return [b"fine"]

        front = make_front(app(fail))
        with pytest.raises(ZeroDivisionError):
            ask(front, Client())
        client = Client()
        asyncio.run(front(scope(path=b"/y"), client.receive, client.send))
        assert client.body == b"fine"


class SlowReader(Client):
    """Takes two pieces of an answer at once, and the others after `let_all`."""

    def __init__(self) -> None:
        super().__init__(piece(b"", more=False))
        self._let = asyncio.Semaphore(3)

    async def send(self, message: dict[str, Any]) -> None:
        await self._let.acquire()
        await super().send(message)

    def let_all(self) -> None:
        for _ in range(100):
            self._let.release()


class Numbered:
    """An answer of pieces, each of another letter. Says when it was closed."""

    def __init__(self, pieces: int) -> None:
        self.content = [bytes([65 + number]) * PIECE_BYTES for number in range(pieces)]
        self.closed = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.content)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self.closed.set)

    @property
    def body(self) -> bytes:
        return b"".join(self.content)


def answering(answers: dict[bytes, Iterable[bytes]], environs: list[dict[str, Any]]) -> Any:
    """Return an application that answers by the path. All requests are of one caller."""

    def answer(environ: dict[str, Any]) -> Iterable[bytes]:
        environs.append(environ)
        environ[CALLER_KEY] = "ada@example.org"
        return answers[environ["PATH_INFO"].encode()]

    return app(answer)


class TestSlowReaders:
    def test_the_rest_of_an_answer_is_kept_and_the_thread_is_free(self) -> None:
        async def run() -> None:
            answer, environs = Numbered(8), list[dict[str, Any]]()
            front = make_front(answering({b"/slow": answer, b"/fast": [b"fine"]}, environs), patience=0.5)
            slow, fast = SlowReader(), Client()
            task = asyncio.create_task(front(scope(path=b"/slow"), slow.receive, slow.send))
            await asyncio.wait_for(answer.closed.wait(), 5)
            # Two pieces are read, one is on its way, and one is handed over at the end.
            assert unread_bytes_of(environs[0], "ada@example.org") == 4 * PIECE_BYTES
            assert unread_bytes_of(environs[0], "bob@example.org") == 0
            await asyncio.wait_for(front(scope(path=b"/fast"), fast.receive, fast.send), 5)
            assert (fast.body, slow.body) == (b"fine", answer.body[: 2 * PIECE_BYTES])
            slow.let_all()
            await asyncio.wait_for(task, 5)
            assert slow.body == answer.body
            assert [message["more_body"] for message in slow.sent[1:-1]] == [True] * 8
            assert unread_bytes_of(environs[0], "ada@example.org") == 0

        asyncio.run(run())

    def test_a_thread_waits_where_too_much_is_kept_already(self) -> None:
        async def run() -> None:
            answer = Numbered(20)
            front = make_front(answering({b"/slow": answer}, []), unread=5 * PIECE_BYTES, patience=0.05)
            slow = SlowReader()
            task = asyncio.create_task(front(scope(path=b"/slow"), slow.receive, slow.send))
            await asyncio.sleep(0.3)
            assert not answer.closed.is_set()
            slow.let_all()
            await asyncio.wait_for(task, 5)
            assert slow.body == answer.body

        asyncio.run(run())

    def test_few_threads_wait_and_other_connections_are_closed(self) -> None:
        async def run() -> None:
            answer, environs = Numbered(20), list[dict[str, Any]]()
            application = answering({b"/slow": answer}, environs)
            front = make_front(application, unread=5 * PIECE_BYTES, patience=0.5, waiting=0)
            slow = SlowReader()
            await asyncio.wait_for(front(scope(path=b"/slow"), slow.receive, slow.send), 5)
            assert slow.body == answer.body[: 2 * PIECE_BYTES]
            assert answer.closed.is_set()
            assert unread_bytes_of(environs[0], "ada@example.org") == 0

        asyncio.run(run())

    def test_a_reader_that_is_too_slow_for_long_is_given_up(self) -> None:
        async def run() -> None:
            class Trickle(Client):
                async def send(self, message: dict[str, Any]) -> None:
                    await asyncio.sleep(0.1)
                    await super().send(message)

            answer, client = Numbered(20), Trickle(piece(b"", more=False))
            front = make_front(
                answering({b"/slow": answer}, []),
                patience=0.05,
                stall_seconds=0.35,
                slowest_bytes=20 * PIECE_BYTES,
            )
            await front(scope(path=b"/slow"), client.receive, client.send)
            # Each piece takes 0.1 s and brings 0.05 s more.
            assert 5 * PIECE_BYTES <= len(client.body) <= 6 * PIECE_BYTES

        run_jumping(run())

    @given(st.lists(st.integers(0, 3 * PIECE_BYTES), max_size=6))
    def test_pieces_have_all_bytes_and_a_limit(self, sizes: list[int]) -> None:
        chunks = [bytes([number]) * size for number, size in enumerate(sizes)]
        pieces = list(cut(chunks))
        assert b"".join(pieces) == b"".join(chunks)
        assert max(map(len, pieces), default=0) <= PIECE_BYTES

    def test_bytes_are_counted_for_a_caller_and_for_all(self) -> None:
        unread = UnreadBytes(per_caller=10, total=15)
        assert unread.take("ada", 10)
        assert not unread.take("ada", 1)
        assert unread.take("bob", 5)
        assert not unread.take("bob", 1)
        unread.give_back("ada", 4)
        assert unread.take("bob", 4)
        assert (unread.of("ada"), unread.of("bob"), unread.of("eve")) == (6, 9, 0)
