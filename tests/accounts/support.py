"""What the tests of this area share."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import TYPE_CHECKING, TypeVar

from django.db import connection

from tests import factories
from tests.conftest import ApiClient

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from accounts.models import User

Result = TypeVar("Result")


def signed_in(user: User) -> ApiClient:
    """Return a client that carries the token of a sign-in."""
    return ApiClient(factories.sign_in(user))


def at_once(calls: Sequence[Callable[[], Result]]) -> list[Result]:
    """Call all of ``calls`` at the same moment, each in a thread and connection of its own."""
    ready = Barrier(len(calls))

    def run(call: Callable[[], Result]) -> Result:
        ready.wait(timeout=30)
        try:
            return call()
        finally:
            connection.close()

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(run, calls))
