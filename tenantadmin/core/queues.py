"""The queues of Celery's tasks."""

from __future__ import annotations

from typing import Any, Final

from celery import current_app

#: Tasks without a queue of their own: they end within seconds.
DEFAULT: Final = "celery"
#: What finds changed logs, and sends the tasks of builds.
FINDING: Final = "finding"
#: Builds of days, months and years.
BUILDING: Final = "building"
#: What deletes superseded files and old rows.
CLEANING: Final = "cleaning"
REPLAYS: Final = "replays"

QUEUES: Final = (DEFAULT, FINDING, BUILDING, CLEANING, REPLAYS)


def queue_length(name: str) -> int:
    """Return the number of tasks in a queue that no worker has taken yet."""
    with current_app.connection_for_write() as connection:
        channel: Any = connection.default_channel
        return int(channel.queue_declare(queue=name).message_count)
