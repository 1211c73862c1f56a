"""One outbox for all messages: each is a row, tried again and again until its receiver accepts it.

A message is written in the transaction of what it is about. A worker takes it for `LEASE`, so a message of a
killed worker is sent again, with the same id. `Kind.is_sent_once` is for mails that had better be lost: they
are never sent again once the mail server may have accepted them.

Tenants take turns, and each has `PLACES`. A receiver that does not answer gets one attempt at a time and
rests between two (`tenantadmin.lib.jobs.queue`). All such attempts get at most half of a lane. So receivers
that hang delay only their own messages.
"""

from __future__ import annotations

import logging
import random
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from queue import Empty, SimpleQueue
from time import monotonic
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, TypeVar

from django.db import models

from tenantadmin.lib.core.outgoing import NotSent
from tenantadmin.lib.core.timestamps import now
from tenantadmin.lib.database.connections import advisory_lock
from tenantadmin.lib.jobs import queue
from tenantadmin.lib.jobs.queue import Job, Queue

if TYPE_CHECKING:
    from tenantadmin.lib.core.outgoing import Answer

logger = logging.getLogger(__name__)

#: A taken message is free again after this time. An attempt takes less.
LEASE: Final = timedelta(minutes=2)
#: A message is given up after this time.
LIFETIME: Final = timedelta(hours=24)
#: How many messages of one tenant are sent at a time.
PLACES: Final = 2
_FIRST_WAIT: Final = timedelta(seconds=10)
_LONGEST_WAIT: Final = timedelta(hours=1)
#: Quiet hours may delay a message by a day.
_FARTHEST: Final = timedelta(days=1)
#: How long a message waits for a receiver that is being tried, or for a free place.
_SHORT_WAIT: Final = timedelta(seconds=5)
#: The time between two looks for new messages while others are being sent.
_LOOK_SECONDS: Final = 0.5


class Message(Job):
    """A message to one receiver. Subclasses have a field ``state`` with choices of these names."""

    State: ClassVar[Any]

    state: Any
    created_at = models.DateTimeField(default=now, db_default=models.functions.Now())
    #: It is given up after this time.
    until = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    #: Why the last attempt failed.
    error = models.TextField(blank=True, default="", db_default="")

    class Meta:
        abstract = True


class Skipped(Exception):
    """The message is no longer for this receiver. The text says why."""


class _Gone(Exception):
    """The message is no longer this worker's."""


@dataclass(slots=True)
class Lane:
    """How many messages are sent in one way at a time, and how long an attempt takes at most."""

    size: int
    seconds: float


#: Mail servers refuse many connections of one client.
MAIL: Final = Lane(size=4, seconds=30.0)
WEB: Final = Lane(size=64, seconds=10.0)


@dataclass(frozen=True, slots=True)
class Parcel:
    """A message that is ready to be sent.

    Attributes:
        receiver: who rests if it does not answer, such as a tenant's host.
        send: sends it without using the database. It calls its argument before the receiver gets the message.
            It returns the receiver's answer, if it is one of HTTP, and raises `NotSent`.
    """

    receiver: str
    send: Callable[[Callable[[], None]], Answer | None]


MessageT = TypeVar("MessageT", bound=Message)


@dataclass(frozen=True, kw_only=True)
class Kind(Generic[MessageT]):
    """A kind of message.

    Attributes:
        waiting: which rows of the model, if not all.
        pack: returns the parcel of a message. It raises `Skipped`, and may use the database.
    """

    name: str
    model: type[MessageT]
    lane: Lane
    pack: Callable[[MessageT], Parcel]
    tenant: str = "tenant_id"
    waiting: models.Q = field(default_factory=models.Q)
    is_sent_once: bool = False

    @property
    def queue(self) -> Queue[MessageT]:
        """The messages that wait."""
        return Queue(
            name=self.name,
            model=self.model,
            waiting=models.Q(state=self.model.State.QUEUED) & self.waiting,
            tenant=self.tenant,
            lease=LEASE,
            longest=LEASE,
            farthest=_FARTHEST,
            places=PLACES,
        )


def put(messages: Sequence[MessageT], *, ignore_conflicts: bool = False) -> list[MessageT]:
    """Put messages into the outbox. Call it in the transaction of what they are about."""
    if not messages:
        return []
    for message in messages:
        message.until = message.until or message.due_at + LIFETIME
    return type(messages[0])._default_manager.bulk_create(messages, ignore_conflicts=ignore_conflicts)


def send_messages(kinds: Iterable[Kind[Any]], *, seconds: float = 50.0) -> int:
    """Send what is due, of earlier kinds first, and what becomes due within ``seconds``.

    Return how many messages were accepted. One worker takes messages at a time.

    Raises:
        Busy: another worker does.
    """
    run = _Run(list(kinds))
    with advisory_lock("outbox", wait=False):
        run.work(until=monotonic() + seconds)
    # The next run begins meanwhile.
    run.finish()
    return run.delivered


@dataclass(eq=False)
class _Attempt:
    kind: Kind[Any]
    message: Any
    tenant: Any
    receiver: str
    ends_at: float
    is_suspect: bool
    #: The receiver may have the message.
    is_out: bool = False


class _Run:
    """Sends messages in threads. Only the thread that calls `work` uses the database."""

    def __init__(self, kinds: Sequence[Kind[Any]]) -> None:
        self.kinds = kinds
        self.delivered = 0
        self.under_way: list[_Attempt] = []
        self.calls: SimpleQueue[Callable[[], None]] = SimpleQueue()

    def work(self, *, until: float) -> None:
        while monotonic() < until:
            taken = sum(self._start(kind) for kind in self.kinds)
            if self.under_way:
                self._listen()
            elif not taken:
                return

    def finish(self) -> None:
        while self.under_way:
            self._listen()

    def _listen(self) -> None:
        """Do what the threads ask for, and give up the attempts that take too long."""
        with suppress(Empty):
            self.calls.get(timeout=_LOOK_SECONDS)()
            while True:
                self.calls.get_nowait()()
        for attempt in [attempt for attempt in self.under_way if attempt.ends_at < monotonic()]:
            self._end(attempt, NotSent(f"No answer within {attempt.kind.lane.seconds:g} seconds."))

    def _start(self, kind: Kind[Any]) -> int:
        """Start the messages of a kind that are due and have a place. Return how many were taken."""
        here = [attempt for attempt in self.under_way if attempt.kind.lane is kind.lane]
        places = Counter(attempt.tenant for attempt in self.under_way)
        taken = kind.queue.take(limit=kind.lane.size - len(here), under_way=places)
        for message in taken:
            try:
                parcel = kind.pack(message)
            except Skipped as reason:
                self._close(kind, message, kind.model.State.SKIPPED, error=str(reason))
                continue
            rest = queue.seconds_to_rest(parcel.receiver)
            if rest is not None and (wait := self._wait_for(kind, parcel.receiver, rest)):
                # The attempt does not count.
                attempts = message.attempts - 1
                self._retry(kind, message, due_at=now() + wait, attempts=attempts, error=message.error)
                continue
            attempt = _Attempt(
                kind=kind,
                message=message,
                tenant=_read(message, kind.tenant),
                receiver=parcel.receiver,
                # Looking a name up has no time limit of its own.
                ends_at=monotonic() + kind.lane.seconds + 1,
                is_suspect=rest is not None,
            )
            self.under_way.append(attempt)
            send = partial(self._send, attempt, parcel)
            threading.Thread(target=send, daemon=True, name=f"outbox {kind.name}").start()
        return len(taken)

    def _wait_for(self, kind: Kind[Any], receiver: str, rest: float) -> timedelta | None:
        """Return how long a message waits for a receiver that did not answer lately; None: no longer."""
        if rest > 0:
            return timedelta(seconds=rest)
        suspects = [
            attempt for attempt in self.under_way if attempt.is_suspect and attempt.kind.lane is kind.lane
        ]
        is_tried = any(attempt.receiver == receiver for attempt in self.under_way)
        return _SHORT_WAIT if is_tried or len(suspects) >= kind.lane.size // 2 else None

    def _send(self, attempt: _Attempt, parcel: Parcel) -> None:
        """Send a message, in a thread of its own."""
        error: Exception | None = None
        try:
            parcel.send(partial(self._ask_to_go, attempt))
        except Exception as problem:  # noqa: BLE001  # it is recorded
            error = problem
        self.calls.put(partial(self._end, attempt, error))

    def _ask_to_go(self, attempt: _Attempt) -> None:
        """Record that the receiver gets a message now. Called in the thread that sends it.

        Raises:
            _Gone: it must not, because this attempt was given up, or another worker sends the message.
        """
        if not attempt.kind.is_sent_once:
            return
        answer: SimpleQueue[bool] = SimpleQueue()
        self.calls.put(lambda: answer.put(self._let_go(attempt)))
        with suppress(Empty):
            if answer.get(timeout=attempt.kind.lane.seconds):
                return
        raise _Gone

    def _let_go(self, attempt: _Attempt) -> bool:
        if attempt in self.under_way:
            kind, message = attempt.kind, attempt.message
            rows = kind.queue.rows.filter(pk=message.pk, due_at=message.due_at)
            attempt.is_out = bool(rows.update(state=kind.model.State.SENDING))
        return attempt.is_out

    def _end(self, attempt: _Attempt, error: Exception | None) -> None:
        """Record how an attempt ended, once."""
        kind, message = attempt.kind, attempt.message
        if error is None:
            self.delivered += self._close(kind, message, kind.model.State.DELIVERED)
        if attempt not in self.under_way:
            return
        self.under_way.remove(attempt)
        if isinstance(error, _Gone):
            return
        refusal = error if isinstance(error, NotSent) and error.has_answered else None
        queue.note(attempt.receiver, has_answered=error is None or refusal is not None)
        if error is None:
            return
        logger.warning(
            "%s %s of tenant %s was not accepted, attempt %d: %s",
            kind.name,
            message.pk,
            attempt.tenant,
            message.attempts,
            error,
            exc_info=None if isinstance(error, NotSent) else error,
        )
        if attempt.is_out and refusal is None:
            self._rows(kind, message).update(error=str(error))
            return
        # Not all at the same time, in case a receiver was down for all.
        wait = min(_FIRST_WAIT * 2 ** min(message.attempts - 1, 20), _LONGEST_WAIT) * random.uniform(0.8, 1.2)  # noqa: S311
        if refusal is not None and refusal.retry_after is not None:
            wait = max(wait, min(timedelta(seconds=refusal.retry_after), _LONGEST_WAIT))
        self._retry(kind, message, due_at=now() + wait, attempts=message.attempts, error=str(error))

    def _retry(self, kind: Kind[Any], message: Any, *, due_at: datetime, attempts: int, error: str) -> None:
        states = kind.model.State
        if message.until is not None and due_at > message.until:
            self._close(kind, message, states.FAILED, error=error)
        else:
            fields = {"due_at": due_at, "attempts": attempts, "error": error}
            self._rows(kind, message).update(state=states.QUEUED, **fields)

    def _close(self, kind: Kind[Any], message: Any, state: str, *, error: str = "") -> int:
        return self._rows(kind, message).update(state=state, finished_at=now(), error=error)

    def _rows(self, kind: Kind[Any], message: Any) -> models.QuerySet[Any]:
        """Return the row of a message, unless it has ended, or another worker has taken it since."""
        states = kind.model.State
        open_states = [states.QUEUED, *([states.SENDING] if kind.is_sent_once else [])]
        rows: models.QuerySet[Any] = kind.model._default_manager.filter(pk=message.pk, state__in=open_states)
        return rows.filter(due_at=message.due_at)


def _read(row: Any, path: str) -> Any:
    """Return the value of a field, which may be another row's."""
    for name in path.split("__"):
        row = getattr(row, name)
    return row
