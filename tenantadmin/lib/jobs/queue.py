"""One queue for all work: which row is due, whose turn it is, and when it is tried again. Celery works.

A row waits in the database until its work is done, because a broker may lose a task and a worker may be
killed. Taking a row moves its due time to after a lease that doubles with each attempt. So a lost row is due
again without a watcher, and a row that fails rests longer each time.

The state is in the cache, for all workers. Without it, every receiver counts as well.
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from django.core.cache import cache
from django.db import models, transaction
from django.db.models import Count, Q, Window
from django.db.models.functions import Now, RowNumber
from redis import RedisError

from tenantadmin.lib.core.queues import queue_length
from tenantadmin.lib.core.timestamps import now
from tenantadmin.lib.database.connections import Busy

if TYPE_CHECKING:
    from celery.canvas import Signature
    from django.db.models import QuerySet

#: The clocks of two machines differ by less.
_CLOCKS_DIFFER: Final = timedelta(minutes=2)

#: A job that was taken more often without being done fails again and again.
ATTEMPTS_TO_FAIL: Final = 3

_MAX_ATTEMPTS: Final = 30_000


class Job(models.Model):
    """A row with work to do."""

    #: A worker takes it from this time on.
    due_at = models.DateTimeField(default=now, db_default=Now())
    #: How often it was taken since it was last done or postponed.
    attempts = models.PositiveSmallIntegerField(default=0, db_default=0)

    class Meta:
        abstract = True


RowT = TypeVar("RowT", bound=Job)


@dataclass(frozen=True, kw_only=True)
class Queue(Generic[RowT]):
    """The rows of a model that wait for their work.

    Attributes:
        name: what the rows are, for logs and metrics.
        waiting: the rows whose work is not done.
        tenant: the field with the tenant.
        places: how many rows of one tenant are taken at a time.
        lease: how long a row is not due after it was taken first.
        longest: the longest lease of a row that was taken often.
        farthest: a row is never due later than this for another reason.
    """

    name: str
    model: type[RowT]
    lease: timedelta
    longest: timedelta
    places: int = 1
    waiting: Q = field(default_factory=Q)
    tenant: str = "tenant_id"
    farthest: timedelta = timedelta()

    @property
    def rows(self) -> QuerySet[RowT]:
        """The rows that wait."""
        rows: QuerySet[RowT] = self.model._default_manager.filter(self.waiting).order_by()
        return rows

    def take(self, *, limit: int, under_way: Mapping[Any, int] | None = None) -> list[RowT]:
        """Take rows that are due: of each tenant in turn, the longest waiting first.

        Args:
            under_way: how many places of each tenant are taken; by default by rows that were taken once.
        """
        if limit <= 0:
            return []
        moment = now()
        # A later time comes from a clock that has been set back since.
        latest = moment + max(self.longest, self.farthest) + _CLOCKS_DIFFER
        self.rows.filter(Q(due_at__gt=latest) | Q(due_at__isnull=True)).update(due_at=moment)
        if under_way is None:
            # A row that failed waits for its next attempt, and holds no place.
            taken = self.rows.filter(attempts=1, due_at__gt=moment, due_at__lte=moment + self.lease)
            under_way = dict(taken.values_list(self.tenant).annotate(Count("pk")))
        turn = Window(RowNumber(), partition_by=self.tenant, order_by=["due_at", "pk"])
        due = self.rows.filter(due_at__lte=moment)
        found = due.annotate(turn=turn).filter(turn__lte=self.places).order_by("turn", "due_at", "pk")
        # Django orders by a wrong position if a column is read twice.
        own = [self.tenant] if self.tenant != self.model._meta.pk.name else []
        # So many may be of tenants without a free place.
        most = limit + self.places * len(under_way)
        chosen = [
            pk
            for number, pk, *tenant in found.values_list("turn", "pk", *own)[:most]
            if number + under_way.get((pk, *tenant)[-1], 0) <= self.places
        ]
        if not chosen:
            return []
        places = {pk: place for place, pk in enumerate(chosen[:limit])}
        with transaction.atomic():
            free = due.select_for_update(no_key=True, skip_locked=True, of=("self",)).filter(pk__in=places)
            rows = sorted(free, key=lambda row: places[row.pk])
            for row in rows:
                row.due_at = now() + min(self.lease * 2 ** min(row.attempts, 20), self.longest)
                row.attempts = min(row.attempts + 1, _MAX_ATTEMPTS)
            self.model._default_manager.bulk_update(rows, ["due_at", "attempts"], batch_size=1_000)
        return rows

    def postpone(self, row: RowT, *, until: datetime | None = None) -> bool:
        """Give a taken row another time, by default after a lease.

        Do nothing if the row got another time since it was taken. Return False then.
        """
        due_at = until or now() + self.lease
        return bool(self.rows.filter(pk=row.pk, due_at=row.due_at).update(attempts=0, due_at=due_at))

    def count_failing(self) -> int:
        """Return how many rows were taken again and again without being done."""
        return self.rows.filter(attempts__gt=ATTEMPTS_TO_FAIL).count()


logger = logging.getLogger(__name__)


def start_due(
    queue: Queue[RowT], *, broker_queue: str, room: int, make_task: Callable[[RowT], Signature[Any]]
) -> None:
    """Send a task for each row whose turn it is, until ``room`` tasks wait in the broker's queue.

    Rows with the same task share it. If it expires, its rows are due again.
    """
    rows = queue.take(limit=room - queue_length(broker_queue))
    tasks = {(task.task, *task.args): task for task in map(make_task, rows)}
    for task in tasks.values():
        task.apply_async(expires=queue.lease.total_seconds())


@contextmanager
def attempt(what: str, *, tenant: object) -> Iterator[None]:
    """Do a job in the block. If another worker does it, do nothing; its row is due again.

    Raises:
        Exception: it failed. The log has the tenant and the reason.
    """
    try:
        yield
    except Busy as reason:
        logger.info("%s of tenant %s waits: %s", what, tenant, reason)
    except Exception as error:
        logger.error("%s of tenant %s failed, and is tried again: %s", what, tenant, error)  # noqa: TRY400
        raise


#: The rest after the first failure. It doubles with each, up to the longest.
_FIRST_REST: Final = 10.0

_LONGEST_REST: Final = 60.0

#: Without an attempt, a failure is forgotten after this time.
_FORGET_SECONDS: Final = 3_600


def seconds_to_rest(receiver: str) -> float | None:
    """Return how long a receiver must still rest; None if its last attempt was answered."""
    try:
        state = cache.get(_key(receiver))
    except RedisError:
        return None
    return None if state is None else min(max(state[1] - time.time(), 0.0), _LONGEST_REST)


def note(receiver: str, *, has_answered: bool) -> None:
    """Note whether a receiver answered. An answer that refuses the message is one too."""
    key = _key(receiver)
    try:
        if has_answered:
            cache.delete(key)
            return
        failures = (cache.get(key) or [0])[0] + 1
        rest = min(_FIRST_REST * 2 ** min(failures - 1, 10), _LONGEST_REST)
        cache.set(key, [failures, time.time() + rest], timeout=_FORGET_SECONDS)
    except RedisError:
        pass


def _key(receiver: str) -> str:
    return f"receiver:{hashlib.blake2b(receiver.encode(), digest_size=16).hexdigest()}"
