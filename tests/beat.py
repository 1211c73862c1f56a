"""Start the jobs that are due, as beat does, for tests whose clients wait for them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connections

from analytics.tasks import start_jobs


@contextmanager
def starting_jobs() -> Iterator[None]:
    over = threading.Event()

    def run() -> None:
        try:
            while not over.wait(0.2):
                start_jobs()
        finally:
            connections.close_all()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
