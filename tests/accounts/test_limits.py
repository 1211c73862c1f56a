"""Rate limits in Redis. Contract: Errors (429), Limits."""

from __future__ import annotations

import socket
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from accounts.limits import claim_try, count_use, storage
from tenantadmin.lib.core.errors import InternalError, RateLimited
from tests.accounts.support import at_once

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LIMIT = "5 per 15 minutes"


def outcome(limit: str, key: str, kind: str = "test") -> str:
    try:
        count_use(limit=limit, kind=kind, key=key)
    except RateLimited:
        return "limited"
    return "ok"


def test_so_many_and_no_more() -> None:
    assert [outcome(LIMIT, "ada") for _ in range(7)] == ["ok"] * 5 + ["limited"] * 2
    assert outcome(LIMIT, "bob") == "ok"
    assert outcome(LIMIT, "ada", kind="another") == "ok"


def test_it_is_exact_under_concurrency(db: None) -> None:
    outcomes = at_once([partial(outcome, LIMIT, "ada")] * 24)
    assert sorted(outcomes) == ["limited"] * 19 + ["ok"] * 5


def test_it_says_when_a_use_is_free_again() -> None:
    for _ in range(5):
        count_use(limit=LIMIT, kind="test", key="ada")
    with pytest.raises(RateLimited) as raised:
        count_use(limit=LIMIT, kind="test", key="ada")
    assert 890 <= int(raised.value.headers["Retry-After"]) <= 900


@pytest.mark.parametrize("limit", ["", "five", "5", "5 per fortnight"])
def test_a_misconfigured_limit_lets_nothing_through(limit: str) -> None:
    with pytest.raises(InternalError):
        count_use(limit=limit, kind="test", key="ada")


def test_without_redis_nothing_is_let_through(settings: Any, tmp_path: Any) -> None:
    settings.REDIS_URL = f"unix://{tmp_path}/missing.sock"
    with pytest.raises(InternalError):
        count_use(limit=LIMIT, kind="test", key="ada")


@pytest.fixture
def silent_redis(settings: Any) -> Iterator[socket.socket]:
    """Connections wait here for a server that does not accept them."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        settings.REDIS_URL = f"redis://127.0.0.1:{listener.getsockname()[1]}"
        settings.REDIS_OPTIONS = {**settings.REDIS_OPTIONS, "socket_timeout": 0.2}
        yield listener


@pytest.mark.parametrize("use", [partial(count_use, limit=LIMIT), claim_try])
def test_a_redis_that_does_not_answer_is_asked_once(
    silent_redis: socket.socket, use: Callable[..., None]
) -> None:
    with pytest.raises(InternalError):
        use(kind="test", key="ada")
    silent_redis.setblocking(False)
    silent_redis.accept()[0].close()
    with pytest.raises(BlockingIOError):
        silent_redis.accept()


def test_a_connection_that_redis_closed_is_opened_again() -> None:
    """As after a restart of Redis."""
    count_use(limit=LIMIT, kind="test", key="ada")
    pool = storage().storage.connection_pool
    connection = pool.get_connection()
    connection._sock.shutdown(socket.SHUT_RDWR)
    pool.release(connection)
    assert outcome(LIMIT, "ada") == "ok"
