"""Builds in processes that are killed at a write: for tests of what SIGKILL leaves.

    python -m tests.analytics.dying DATABASE STORE_URL

For every number that it reads, a forked child brings everything up to date and is killed before that one of
its writes, be it to the store or to the database; a line tells before which, or ``done``. The parent is warm
and holds neither a connection nor an engine, so that a child begins at once.
"""

from __future__ import annotations

import gc
import os
import re
import signal
import sys
import traceback
from itertools import count
from typing import Any, Final

import django
from django.conf import settings

_WRITING: Final = re.compile(r'(INSERT INTO|UPDATE|DELETE FROM) "(\w+)"')


def main(database: str, store_url: str) -> None:
    """Answer each line of the input."""
    settings.DATABASES["default"]["NAME"], settings.OBJECT_STORE_URL = database, store_url
    django.setup()
    from analytics.summaries import store  # needs Django
    from tests.analytics import builds  # noqa: F401

    # Every document is large enough to be an object of its own.
    store.INLINE_BYTES = 0  # type: ignore[misc]
    # A child that collected garbage would copy all that it shares with its parent.
    gc.collect()
    gc.freeze()
    gc.disable()
    for line in sys.stdin:
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            _end_as_told(last=int(line), place=writing)
        os.close(writing)
        with os.fdopen(reading) as told:
            place = told.read()
        _, status = os.waitpid(child, 0)
        ended = os.waitstatus_to_exitcode(status)
        print({-signal.SIGKILL: place, 0: "done"}.get(ended, f"exit code {ended}"), flush=True)  # noqa: T201


def _end_as_told(*, last: int, place: int) -> None:
    status = 1
    try:
        _build(last=last, place=place)
        status = 0
    except BaseException:  # noqa: BLE001  # whatever it is, the child ends here
        traceback.print_exc()
    os._exit(status)


def _build(*, last: int, place: int) -> None:
    """Build everything; before the write numbered ``last`` tell it to the descriptor ``place``, and end."""
    from django.db import connection

    from tenantadmin.objectstore import LocalStore, default_store
    from tests.analytics.builds import refresh

    numbers = count(1)

    def end_at(name: str) -> None:
        if next(numbers) == last:
            os.write(place, name.encode())
            os.kill(os.getpid(), signal.SIGKILL)

    def write_object(store: LocalStore, key: str, content: Any) -> None:
        end_at(key)
        write(store, key, content)

    def execute(run: Any, sql: str, *arguments: Any) -> Any:
        if match := _WRITING.match(sql):
            end_at(" ".join(match.groups()))
        return run(sql, *arguments)

    write = LocalStore.write
    LocalStore.write = write_object  # type: ignore[method-assign,assignment]
    with connection.execute_wrapper(execute):
        # The lock of the one before is free when the server has noticed its end.
        refresh(default_store(), wait=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
