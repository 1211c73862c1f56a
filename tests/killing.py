"""Kill a worker before or after any of its statements to the database. What it has not committed is lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection


class Killed(BaseException):
    """The worker is gone. Nothing catches it."""


@contextmanager
def killed_at(number: int, *, before: bool) -> Iterator[None]:
    """Kill the worker before or after its statement with this number, if it comes so far."""
    count = 0

    def run(execute: Callable[..., Any], sql: str, *arguments: Any) -> Any:
        nonlocal count
        if "SAVEPOINT" in sql:  # of the test's own transaction, in which the worker's are
            return execute(sql, *arguments)
        count += 1
        if before and count == number:
            raise Killed
        result = execute(sql, *arguments)
        if count == number:
            raise Killed
        return result

    try:
        with connection.execute_wrapper(run):
            yield
    except Killed:
        pass
