"""Transactions that overlap on purpose. Each step waits for the one before, not for a fixed time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

import pytest
from django.db import connection, transaction

T = TypeVar("T")

#: Seconds after which a test that waits for another transaction gives up.
PATIENCE = 30.0


class OpenTransaction:
    """A transaction in its own thread that has done its work, but is not committed yet."""

    def __init__(self, work: Callable[[], object]) -> None:
        self._work = work
        self._done = threading.Event()
        self._end = threading.Event()
        self._commit = True
        self._pool = ThreadPoolExecutor(1)
        self._future: Future[None] = self._pool.submit(self._run)
        self._done.wait(PATIENCE)
        if self._future.done():
            self._future.result()

    def _run(self) -> None:
        try:
            with transaction.atomic():
                self._work()
                self._done.set()
                self._end.wait(PATIENCE)
                transaction.set_rollback(not self._commit)
        finally:
            self._done.set()
            connection.close()

    def finish(self, *, commit: bool) -> None:
        """Commit the work or roll it back. Wait until that is done."""
        self._commit = commit
        self._end.set()
        self._future.result(PATIENCE)
        self._pool.shutdown()


@contextmanager
def uncommitted(work: Callable[[], object]) -> Iterator[OpenTransaction]:
    """Do ``work`` in a transaction that stays open until `OpenTransaction.finish`."""
    opened = OpenTransaction(work)
    try:
        yield opened
    finally:
        opened.finish(commit=False)


def in_thread(work: Callable[[], T]) -> Future[T]:
    """Start ``work`` in a new thread with its own connection."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001 - the test asks the future
            future.set_exception(error)
        finally:
            connection.close()

    threading.Thread(target=run, daemon=True).start()
    return future


def wait_until_blocked(future: Future[T]) -> None:
    """Return when a session of this database waits for the lock of another."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if future.done():
            raise AssertionError("The work ended instead of waiting.")
        if _is_any_blocked():
            return
    raise AssertionError("Nothing waited for a lock.")


def result_unless_blocked(future: Future[T]) -> T:
    """Return the result. Fail as soon as a session of this database waits for the lock of another."""
    deadline = time.monotonic() + PATIENCE
    while not future.done() and time.monotonic() < deadline:
        if _is_any_blocked():
            raise AssertionError("The work waits for a lock.")
    return future.result(0)


def _is_any_blocked() -> bool:
    """Return True if a session waits for an open transaction, and not only for its turn to extend a file."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity AS waiting JOIN pg_stat_activity AS holder "
            "ON holder.pid = ANY (pg_blocking_pids(waiting.pid)) "
            "WHERE waiting.datname = current_database() AND waiting.wait_event_type = 'Lock' "
            "AND holder.state = 'idle in transaction'"
        )
        row = cursor.fetchone()
    return bool(row and row[0])


def run_behind(
    first: Callable[[], object], second: Callable[[], T], *, commits: bool, refusal: type[Exception]
) -> T | None:
    """Run ``second`` while it waits for the uncommitted ``first``. Then commit ``first`` or roll it back.

    If ``first`` was committed, assert that ``second`` raises ``refusal``. Otherwise return its result.
    """
    with uncommitted(first) as opened:
        waiting = in_thread(second)
        wait_until_blocked(waiting)
        opened.finish(commit=commits)
    if not commits:
        return waiting.result(PATIENCE)
    with pytest.raises(refusal):
        waiting.result(PATIENCE)
    return None


def all_at_once(works: Sequence[Callable[[], T]]) -> list[T]:
    """Start all works at the same moment, in parallel. Return their results."""
    barrier = threading.Barrier(len(works))

    def start(work: Callable[[], T]) -> T:
        try:
            barrier.wait(PATIENCE)
            return work()
        finally:
            connection.close()

    with ThreadPoolExecutor(len(works)) as pool:
        return [future.result() for future in [pool.submit(start, work) for work in works]]
