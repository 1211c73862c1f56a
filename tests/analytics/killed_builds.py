"""Run builds in processes that are killed before a write, to test what SIGKILL leaves.

    python -m tests.analytics.killed_builds DATABASE STORE_URL

For each number N that it reads, it forks a child that rebuilds everything that is stale. The child is killed
before its N-th write to the store or the database. The output is a line that names this write, or ``done`` if
there were fewer writes. The parent has imported everything, but opened no connection, so a child starts fast.
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

from tenantadmin.lib.core.memory import freeze_objects
from tenantadmin.lib.objectstore import LocalStore, default_store, storage_settings

_WRITING: Final = re.compile(r'(INSERT INTO|UPDATE|DELETE FROM) "(\w+)"')


def main(database: str, store_url: str) -> None:
    """Answer each line of the input."""
    settings.DATABASES["default"]["NAME"] = database
    settings.STORAGES["objects"] = storage_settings(store_url)
    django.setup()
    from analytics.numbers import store  # needs Django
    from tests.analytics import builds  # noqa: F401

    # Every document becomes an object of its own.
    store.INLINE_BYTES = 0  # type: ignore[misc]
    # Garbage collection in a child would copy the memory that it shares with its parent.
    freeze_objects()
    gc.disable()
    for line in sys.stdin:
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            _run_child(last=int(line), output=writing)
        os.close(writing)
        with os.fdopen(reading) as stream:
            name = stream.read()
        _, status = os.waitpid(child, 0)
        code = os.waitstatus_to_exitcode(status)
        print({-signal.SIGKILL: name, 0: "done"}.get(code, f"exit code {code}"), flush=True)  # noqa: T201


def _run_child(*, last: int, output: int) -> None:
    status = 1
    try:
        _build(last=last, output=output)
        status = 0
    except BaseException:  # noqa: BLE001  # the child must not return from here
        traceback.print_exc()
    os._exit(status)


def _build(*, last: int, output: int) -> None:
    """Build everything. Before write number ``last``, write its name to ``output`` and kill this process."""
    from django.db import connection

    from tests.analytics.builds import refresh

    numbers = count(1)

    def die_before(name: str) -> None:
        if next(numbers) == last:
            os.write(output, name.encode())
            os.kill(os.getpid(), signal.SIGKILL)

    def write_object(store: LocalStore, name: str, content: Any) -> str:
        die_before(name)
        return save(store, name, content)

    def execute(run: Any, sql: str, *arguments: Any) -> Any:
        if match := _WRITING.match(sql):
            die_before(" ".join(match.groups()))
        return run(sql, *arguments)

    save = LocalStore.save
    LocalStore.save = write_object  # type: ignore[method-assign,assignment]
    with connection.execute_wrapper(execute):
        # PostgreSQL frees the lock of a killed child when it notices that the connection is closed.
        refresh(default_store(), wait=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
