"""The queues of Celery's tasks."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import Any, Final

from celery import current_app

#: All other tasks: they end within seconds.
DEFAULT: Final = "celery"
#: Tasks that find changed logs and send the tasks of builds.
FINDING: Final = "finding"
#: Builds of days, months and years.
BUILDING: Final = "building"
#: Tasks that delete superseded files and old rows.
CLEANING: Final = "cleaning"
REPLAYS: Final = "replays"

QUEUES: Final = (DEFAULT, FINDING, BUILDING, CLEANING, REPLAYS)

#: A running worker answers a call within a few milliseconds.
_WORKER_SECONDS: Final = 0.5


@dataclass(frozen=True, slots=True)
class QueueState:
    """Number of tasks in a queue, and seconds that the oldest has waited, if known."""

    name: str
    length: int
    age_seconds: float | None


def read_queues() -> list[QueueState]:
    """Return the state of all queues."""
    with current_app.connection_for_write() as connection:
        channel: Any = connection.default_channel
        # The broker is Redis, where a queue is a list with the oldest task at its end.
        redis = channel.client
        return [QueueState(name, redis.llen(name), _age_of(redis.lindex(name, -1))) for name in QUEUES]


def _age_of(message: bytes | None) -> float | None:
    """Return the seconds since a task was sent, from its headers."""
    sent_at = None if message is None else json.loads(message).get("headers", {}).get("sent_at")
    return None if sent_at is None else max(0.0, time.time() - sent_at)


def find_workers() -> list[str]:
    """Return the names of the workers that answer within half a second."""
    answers = current_app.control.ping(timeout=_WORKER_SECONDS) or []
    return sorted(name for answer in answers for name in answer)


def queue_length(name: str) -> int:
    """Return the number of tasks in a queue that no worker has taken yet."""
    with current_app.connection_for_write() as connection:
        channel: Any = connection.default_channel
        return int(channel.queue_declare(queue=name).message_count)
