"""Send the queued messages of alerts, again and again for 24 hours, until the receiver accepts them.

A message is a row, written in the transaction of its crossing. A worker takes it by moving its next attempt
to after `_LEASE`, so a message of a killed worker is sent again, with the same id. A receiver that keeps the
ids it has seen gets each message once.
"""

from __future__ import annotations

import logging
import random
from concurrent.futures import ThreadPoolExecutor, wait
from datetime import UTC, datetime, time, timedelta
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import F, Window
from django.db.models.functions import RowNumber
from standardwebhooks.webhooks import Webhook

from accounts.mailing import MailNotSent, send_mail
from accounts.models import User
from analytics.alerts.documents import signing_secret
from analytics.alerts.messages import heading, make_content, slack_payload, webhook_payload
from analytics.digest.preferences import readable_tenants
from analytics.models import AlertDelivery, AlertFiring
from logs.locks import build_lock
from tenantadmin.lib.core import outgoing
from tenantadmin.lib.core.mail_text import named, unlinked
from tenantadmin.lib.core.outgoing import NotSent
from tenantadmin.lib.core.rendering import dump_json
from tenantadmin.lib.core.timestamps import now

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from concurrent.futures import Future

    from analytics.models import Alert

logger = logging.getLogger(__name__)

#: The time of one attempt.
SECONDS: Final = 10.0
#: A message that a worker took is free again after this time. Looking a name up may take half a minute.
_LEASE: Final = timedelta(minutes=2)
#: A message is given up after this time.
LIFETIME: Final = timedelta(hours=24)
_FIRST_WAIT: Final = timedelta(seconds=10)
_LONGEST_WAIT: Final = timedelta(hours=1)
#: How many messages are sent at a time, and how many of these are one tenant's.
_AT_ONCE: Final = 16
_PER_TENANT: Final = 2
#: How long messages and their alerts' firings are kept.
_RETENTION: Final = timedelta(days=90)
_EVERY_TENANT: Final = UUID(int=0)


class _Skipped(Exception):
    """The message is no longer for this receiver."""


def queue_messages(
    alert: Alert,
    *,
    occasion: AlertDelivery.Occasion,
    at: datetime,
    firing: AlertFiring | None = None,
) -> list[AlertDelivery]:
    """Queue a message to each channel of an alert. Call it in the transaction of the crossing.

    A message about a crossing waits until the alert's quiet hours are over.
    """
    content = make_content(alert, firing=firing)
    due_at = at if firing is None else after_quiet_hours(alert.quiet_hours, at=at)
    return AlertDelivery.objects.bulk_create(
        [
            AlertDelivery(
                alert=alert,
                firing=firing,
                occasion=occasion,
                channel=channel,
                channel_number=number,
                content=content,
                created_at=at,
                due_at=due_at,
                until=due_at + LIFETIME,
            )
            for number, channel in enumerate(alert.channels)
        ]
    )


def after_quiet_hours(quiet: Mapping[str, str] | None, *, at: datetime) -> datetime:
    """Return the time itself, or the end of the quiet hours that it lies in."""
    if quiet is None:
        return at
    start, end = (time.fromisoformat(quiet[name]).replace(tzinfo=UTC) for name in ("from", "to"))
    moment = at.timetz()
    is_quiet = start <= moment < end if start < end else moment >= start or moment < end
    if not is_quiet:
        return at
    end_day = at.date() if moment < end else at.date() + timedelta(days=1)
    return datetime.combine(end_day, end)


def deliver_messages(*, seconds: float = 50.0) -> int:
    """Send the messages that are due, for at most about ``seconds``. Return how many were accepted.

    One worker does at a time, so that receivers that hang do not hold up the others.

    Raises:
        Busy: another worker does.
    """
    stop_at = now() + timedelta(seconds=seconds)
    delivered = 0
    with build_lock(tenant=_EVERY_TENANT, period="alert messages", wait=False):
        while now() < stop_at and (taken := _take()):
            delivered += _send_all(taken)
    return delivered


def delete_old_messages() -> None:
    """Delete messages and ended firings that are older than `_RETENTION`."""
    before = now() - _RETENTION
    AlertDelivery.objects.filter(created_at__lt=before).delete()
    AlertFiring.objects.filter(ended_at__lt=before).delete()


def _take() -> list[AlertDelivery]:
    """Take messages that are due, the longest waiting first, few of each tenant. No other worker has them."""
    moment = now()
    due = AlertDelivery.objects.filter(state=AlertDelivery.State.QUEUED, due_at__lte=moment)
    turn = Window(RowNumber(), partition_by=F("alert__tenant"), order_by=["due_at", "pk"])
    chosen = due.annotate(turn=turn).filter(turn__lte=_PER_TENANT).order_by("due_at", "pk")
    with transaction.atomic():
        rows = due.select_for_update(skip_locked=True, of=("self",)).select_related("alert__tenant")
        taken = list(rows.filter(pk__in=list(chosen.values_list("pk", flat=True)[:_AT_ONCE])))
        ids = [message.pk for message in taken]
        AlertDelivery.objects.filter(pk__in=ids).update(attempts=F("attempts") + 1, due_at=moment + _LEASE)
    return taken


def _send_all(messages: list[AlertDelivery]) -> int:
    """Send messages that this worker has taken, and record how each attempt ended."""
    sending: dict[Future[None], AlertDelivery] = {}
    pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="alerts")
    try:
        for message in messages:
            try:
                sending[pool.submit(_prepare(message))] = message
            except _Skipped as reason:
                _end(message, AlertDelivery.State.SKIPPED, error=str(reason))
        # Looking a name up has no time limit of its own.
        wait(sending, timeout=SECONDS + 1)
        return sum(_record(future, message) for future, message in sending.items())
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _record(future: Future[None], message: AlertDelivery) -> bool:
    """Record the end of an attempt. Return True if the receiver accepted the message."""
    error = f"No answer within {SECONDS:g} seconds."
    if future.done():
        try:
            future.result()
        except (NotSent, MailNotSent) as problem:
            error = str(problem)
        else:
            _end(message, AlertDelivery.State.DELIVERED)
            return True
    attempts = message.attempts + 1
    # Not all at the same time, in case a receiver was down for all.
    pause = min(_FIRST_WAIT * 2 ** min(attempts - 1, 20), _LONGEST_WAIT) * random.uniform(0.8, 1.2)  # noqa: S311
    due_at = now() + pause
    if due_at > message.until:
        _end(message, AlertDelivery.State.FAILED, error=error)
    else:
        _queued(message).update(due_at=due_at, error=error)
    return False


def _end(message: AlertDelivery, state: AlertDelivery.State, *, error: str = "") -> None:
    _queued(message).update(state=state, finished_at=now(), error=error)


def _queued(message: AlertDelivery) -> Any:
    return AlertDelivery.objects.filter(pk=message.pk, state=AlertDelivery.State.QUEUED)


def _prepare(message: AlertDelivery) -> Callable[[], None]:
    """Return a function that sends a message and does not use the database.

    It raises `NotSent` or `MailNotSent` if the receiver did not accept the message.

    Raises:
        _Skipped: the receiver may not have it, or the tenant is deleted.
    """
    tenant = message.alert.tenant
    if tenant is not None and tenant.deleted_at is not None:
        raise _Skipped("The tenant is deleted.")
    channel = message.channel
    if channel["type"] == "email":
        if tenant is not None:
            _require_reader(channel["to"], tenant.pk)
        return lambda: _mail(message)
    if channel["type"] == "webhook":
        body = dump_json(webhook_payload(message, at=message.created_at))
        return lambda: _post(message, body, signed_at=now())
    return lambda: _post(message, dump_json(slack_payload(message)))


def _require_reader(email: str, tenant_id: UUID) -> None:
    """Refuse a receiver who has never signed in, or may not read the tenant's summaries any more."""
    user = User.objects.filter(email=email, is_active=True).first()
    if user is None or not readable_tenants(user).filter(pk=tenant_id).exists():
        raise _Skipped("The receiver is not a member who may read this tenant's summaries.")
    if user.last_login is None:
        raise _Skipped("The receiver has not signed in yet.")


def _mail(message: AlertDelivery) -> None:
    if not settings.MAGIC_LINKS_ENABLED:
        raise NotSent("The service has no mail server.")
    host = urlsplit(settings.PUBLIC_BASE_URL).hostname
    title, tenant = unlinked(heading(message)), message.content["tenantName"]
    context = {
        **message.content,
        "tenantName": tenant and named(tenant),
        "heading": title,
        "service": settings.PUBLIC_BASE_URL,
    }
    send_mail(
        to=message.channel["to"],
        subject=title,
        template="alert",
        context=context,
        headers={"Message-ID": f"<alert-{message.pk}@{host}>", "Auto-Submitted": "auto-generated"},
    )


def _post(message: AlertDelivery, body: bytes, *, signed_at: datetime | None = None) -> None:
    """Send JSON, signed by the scheme of the Standard Webhooks if ``signed_at`` is a time.

    Raises:
        NotSent: the receiver did not answer with 2xx.
    """
    headers = {"Content-Type": "application/json", "User-Agent": "tenantadmin"}
    if signed_at is not None:
        identity = str(message.pk)
        headers |= {
            "webhook-id": identity,
            "webhook-timestamp": str(int(signed_at.timestamp())),
            "webhook-signature": Webhook(signing_secret(message.alert)).sign(
                identity, signed_at, body.decode()
            ),
        }
    status = outgoing.post(
        message.channel["url"],
        body=body,
        headers=headers,
        seconds=SECONDS,
        exceptions=outgoing.parse_exceptions(tuple(settings.WEBHOOK_EXCEPTIONS)),
    ).status
    if 300 <= status < 400:
        raise NotSent(f"The receiver redirects (status {status}). Give the address that it redirects to.")
    if not 200 <= status < 300:
        raise NotSent(f"The receiver answered with status {status}.")
