"""Send the messages of the outbox in a test."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from django.core.cache import cache

from accounts.models import Mail
from analytics.models import AlertDelivery, DigestMail
from analytics.tasks import OUTBOX
from tenantadmin.lib.core.timestamps import now
from tenantadmin.lib.jobs import outbox
from tenantadmin.lib.jobs.outbox import send_messages

if TYPE_CHECKING:
    import pytest


def send_all(*, seconds: float = 50.0) -> int:
    """Send what is due. Return how many messages were accepted."""
    return send_messages(OUTBOX, seconds=seconds)


@contextmanager
def sending() -> Iterator[None]:
    """Send what the block put into the outbox."""
    yield
    send_all()


def make_all_due() -> None:
    """Let the next attempt of all messages be now, also where the receiver rests."""
    for model in (Mail, AlertDelivery, DigestMail):
        model.objects.update(due_at=now())
    cache.clear()


def set_clock(monkeypatch: pytest.MonkeyPatch, read: Callable[[], dt.datetime]) -> None:
    """Let the outbox read the time from a function."""
    for module in ("tenantadmin.lib.jobs.queue", "tenantadmin.lib.jobs.outbox"):
        monkeypatch.setattr(f"{module}.now", read)


class _InLine:
    """A thread that runs at once in the present one, which it ends if it is killed."""

    def __init__(self, *, target: Callable[[], None], **_: object) -> None:
        self.start = target


def send_in_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the outbox send one message after the other in the present thread: always in the same order."""

    def ask_to_go(run: Any, attempt: Any) -> None:
        if attempt.kind.is_sent_once and not run._let_go(attempt):
            raise outbox._Gone

    monkeypatch.setattr("tenantadmin.lib.jobs.outbox.threading.Thread", _InLine)
    monkeypatch.setattr(outbox._Run, "_ask_to_go", ask_to_go)
