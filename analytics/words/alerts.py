"""The messages of alerts: as a mail, a signed webhook, and for Slack, Microsoft Teams and PagerDuty."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from datetime import datetime
from html import escape
from threading import Event, Lock
from typing import TYPE_CHECKING, Annotated, Any, Final
from urllib.parse import urlsplit
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Q
from msgspec import Meta
from standardwebhooks.webhooks import Webhook

from accounts.limits import count_use
from accounts.mailing import compose, parcel_of
from accounts.models import User
from analytics.models import AlertDelivery
from analytics.watch.alert_kinds import KINDS, SERVICE_KINDS
from analytics.watch.alerts import (
    AlertChannel,
    after_quiet_hours,
    describe_channel,
    draft_alert,
    note_channel_test,
    note_test,
    read_alert,
    signing_secrets,
)
from analytics.watch.preferences import readable_tenants
from analytics.words.alert_numbers import describe_number
from tenantadmin.lib.core import outgoing
from tenantadmin.lib.core.emails import named, unlinked
from tenantadmin.lib.core.errors import RateLimited
from tenantadmin.lib.core.outgoing import NotSent
from tenantadmin.lib.core.rendering import dump_json
from tenantadmin.lib.core.structs import JsonStruct
from tenantadmin.lib.core.timestamps import format_timestamp, now
from tenantadmin.lib.jobs import outbox
from tenantadmin.lib.jobs.outbox import MAIL, WEB, Kind, Parcel, Skipped

if TYPE_CHECKING:
    from analytics.models import Alert, AlertFiring
    from tenantadmin.lib.core.outgoing import Answer

logger = logging.getLogger(__name__)


def make_messages(
    alert: Alert,
    *,
    occasion: AlertDelivery.Occasion,
    at: datetime,
    firing: AlertFiring | None = None,
) -> list[AlertDelivery]:
    """Return a message to each channel of an alert, which is not stored.

    A message about a crossing waits until the alert's quiet hours are over.
    """
    content = make_content(alert, firing=firing)
    due_at = at if firing is None else after_quiet_hours(alert.quiet_hours, at=at)
    return [
        AlertDelivery(
            alert=alert,
            firing=firing,
            occasion=occasion,
            channel=channel,
            channel_number=number,
            content=content,
            created_at=at,
            due_at=due_at,
        )
        for number, channel in enumerate(alert.channels)
    ]


def make_content(alert: Alert, *, firing: AlertFiring | None) -> dict[str, Any]:
    """Return what the messages of a crossing, or of a test, say: the ``data`` of the webhook."""
    tenant = alert.tenant
    kind = (SERVICE_KINDS if tenant is None else KINDS)[alert.kind]
    value = None if firing is None else alert.value
    text = "This is a test. The alert's channel works."
    if value is not None:
        text = describe_number(
            kind,
            value=value,
            before=alert.before,
            currency=alert.currency,
            threshold=alert.threshold,
            window=alert.window,
        )
    return {
        "alertId": str(alert.pk),
        "name": alert.name,
        "tenantId": None if tenant is None else str(tenant.pk),
        "tenantName": None if tenant is None else tenant.name,
        "kind": alert.kind,
        "unit": kind.unit,
        "currency": alert.currency or None,
        "threshold": alert.threshold,
        "window": alert.window,
        "value": value,
        "startedAt": firing and format_timestamp(firing.started_at),
        "endedAt": firing and firing.ended_at and format_timestamp(firing.ended_at),
        "text": text,
        "href": _dashboard_address(alert),
    }


def _dashboard_address(alert: Alert) -> str:
    if alert.tenant_id is None:
        return f"{settings.PUBLIC_BASE_URL}/admin/"
    return f"{settings.DASHBOARD_URL}#/t/{alert.tenant_id}/alerts"


def send_test(*, tenant_id: UUID, alert_id: UUID, actor: str) -> list[AlertDelivery]:
    """Queue a message to each channel of an alert that says that it is a test.

    Raises:
        TenantNotFound, AlertNotFound: there is no such live tenant, or it has no such alert.
        RateLimited: the tenant has sent too many tests.
    """
    read_alert(tenant_id=tenant_id, alert_id=alert_id)
    count_use(limit=settings.ALERT_TEST_LIMIT, kind="alert-test", key=str(tenant_id))
    with transaction.atomic():
        alert = note_test(tenant_id=tenant_id, alert_id=alert_id, actor=actor)
        return outbox.put(make_messages(alert, occasion=AlertDelivery.Occasion.TEST, at=now()))


class AlertChannelTest(JsonStruct):
    """What became of a test message to a channel."""

    channel: AlertChannel
    accepted: Annotated[bool, Meta(description="The receiver took it; of mails, the mail server.")]
    answer: Annotated[str, Meta(description="What the receiver answered, or why it got no message.")]


#: How long the channels of a test have together. Looking a name up has no time limit of its own.
_TEST_SECONDS: Final = WEB.seconds + 1
#: How many tests a process sends at a time; each holds a thread that answers requests.
_MOST_TESTS: Final = 4
_lock: Final = Lock()
#: The tenants of the tests that this process sends.
_testing: Final[set[UUID]] = set()


def try_channels(
    *, tenant_id: UUID, wanted: Mapping[str, Any], actor: str, alert_id: UUID | None = None
) -> list[AlertChannelTest]:
    """Send a message to each channel of an alert that is not stored so, and wait for the answers.

    All channels have `_TEST_SECONDS` together.

    Args:
        wanted: as in `create_alert`.
        alert_id: the alert that this would replace, whose secrets sign webhooks. Without it, a secret signs
            them that no receiver knows yet.

    Raises:
        TenantNotFound, ValidationFailed: as `create_alert`.
        AlertNotFound: the tenant has no such alert.
        RateLimited: the tenant has sent too many tests, or one is still being sent.
    """
    alert = draft_alert(tenant_id=tenant_id, alert_id=alert_id, wanted=wanted)
    with ExitStack() as until_sent:
        _take_place(tenant_id)
        until_sent.callback(_testing.discard, tenant_id)
        count_use(limit=settings.ALERT_TEST_LIMIT, kind="alert-test", key=str(tenant_id))
        note_channel_test(alert, actor=actor)
        messages = make_messages(alert, occasion=AlertDelivery.Occasion.TEST, at=now())
        is_over = Event()
        pool = ThreadPoolExecutor(max_workers=len(messages), thread_name_prefix="alert test")
        sending = [_begin(message, pool, is_over) for message in messages]
        pool.shutdown(wait=False)
        # What has no time limit keeps the place, so that threads do not pile up.
        _call_after(sending, until_sent.pop_all().close)
    ended, _ = wait(sending, timeout=_TEST_SECONDS)
    is_over.set()
    outcomes = [
        _outcome(message, future) if future in ended else (False, _NO_ANSWER)
        for message, future in zip(messages, sending, strict=True)
    ]
    return [
        AlertChannelTest(channel=describe_channel(message.channel), accepted=accepted, answer=answer)
        for message, (accepted, answer) in zip(messages, outcomes, strict=True)
    ]


_NO_ANSWER: Final = f"No answer within {WEB.seconds:g} seconds."


def _take_place(tenant_id: UUID) -> None:
    """Begin a test of a tenant.

    Raises:
        RateLimited: the tenant has one already, or this process has too many.
    """
    with _lock:
        if tenant_id in _testing or len(_testing) >= _MOST_TESTS:
            whose = "of this tenant" if tenant_id in _testing else "of others"
            message = f"A test {whose} is still being sent. Try again in a moment."
            raise RateLimited(message, retry_after=math.ceil(_TEST_SECONDS))
        _testing.add(tenant_id)


def _call_after(futures: Sequence[Future[Any]], act: Callable[[], None]) -> None:
    """Call ``act`` when all have ended, in the thread of the last."""
    left = [*futures]

    def note(future: Future[Any]) -> None:
        with _lock:
            left.remove(future)
            is_last = not left
        if is_last:
            act()

    for future in futures:
        future.add_done_callback(note)


def _begin(message: AlertDelivery, pool: Executor, is_over: Event) -> Future[Answer | None]:
    """Begin to send a message. What is `Skipped` has ended."""

    def go() -> None:
        if is_over.is_set():
            raise NotSent(_NO_ANSWER)

    try:
        return pool.submit(_pack(message).send, go)
    except Skipped as error:
        skipped: Future[Answer | None] = Future()
        skipped.set_exception(error)
        return skipped


def _outcome(message: AlertDelivery, ended: Future[Answer | None]) -> tuple[bool, str]:
    """Return whether a message was accepted, and the answer in words."""
    try:
        answer = ended.result()
    except (NotSent, Skipped) as error:
        return False, str(error)
    except Exception:  # the others are answered
        logger.exception("A test of a channel of the type %s failed", message.channel["type"])
        return False, "The message was not sent. The service's log says why."
    if answer is None:
        return True, "The mail server took the mail."
    return True, f"The receiver answered with status {answer.status}."


_HEADINGS: Final = {"started": "Alert", "ended": "Over", "test": "Test of the alert"}


def heading(delivery: AlertDelivery) -> str:
    """Return one line: the subject of the mail."""
    content = delivery.content
    where = content["tenantName"] or settings.PUBLIC_BASE_URL
    return f"{_HEADINGS[delivery.occasion]} “{content['name']}”, {where}"


def webhook_payload(delivery: AlertDelivery) -> dict[str, Any]:
    """Return the JSON of a webhook, in the shape of the Standard Webhooks."""
    return {
        "type": f"alert.{delivery.occasion}",
        "timestamp": format_timestamp(delivery.created_at),
        "data": delivery.content,
    }


def slack_payload(delivery: AlertDelivery) -> dict[str, Any]:
    """Return the JSON of an incoming webhook of Slack."""
    content = delivery.content
    # Slack reads a mention of a channel in <>, for example.
    title, text = (escape(part, quote=False) for part in (heading(delivery), content["text"]))
    return {"text": f"*{title}*\n{text}\n<{content['href']}|Open>"}


def teams_payload(delivery: AlertDelivery) -> dict[str, Any]:
    """Return the JSON of a webhook of Teams (Workflows): an Adaptive Card. A run of text holds no markup."""
    content = delivery.content
    head, text = (
        {"type": "RichTextBlock", "inlines": [{"type": "TextRun", "text": one, "weight": weight}]}
        for one, weight in ((heading(delivery), "Bolder"), (content["text"], "Default"))
    )
    card = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": [head, text],
        "actions": [{"type": "Action.OpenUrl", "title": "Open", "url": content["href"]}],
    }
    attachment = {
        "contentType": "application/vnd.microsoft.card.adaptive",
        "contentUrl": None,
        "content": card,
    }
    return {"type": "message", "attachments": [attachment]}


def pagerduty_payload(delivery: AlertDelivery) -> dict[str, Any]:
    """Return the JSON of PagerDuty's Events API v2. The end of a firing resolves what its start opened."""
    content = delivery.content
    return {
        "routing_key": delivery.channel["key"],
        "event_action": "resolve" if delivery.occasion == AlertDelivery.Occasion.ENDED else "trigger",
        "dedup_key": str(delivery.firing_id or delivery.pk),
        "client": "tenantadmin",
        "client_url": content["href"],
        "links": [{"href": content["href"], "text": "Open"}],
        "payload": {
            "summary": f"{heading(delivery)}: {content['text']}"[:_MAX_SUMMARY],
            "source": content["tenantName"] or settings.PUBLIC_BASE_URL,
            "severity": "info" if delivery.occasion == AlertDelivery.Occasion.TEST else "warning",
            "class": content["kind"],
            "custom_details": content,
        },
    }


#: What PagerDuty takes.
_MAX_SUMMARY: Final = 1024
#: By the type of a channel: what a receiver gets that checks no signature.
_PAYLOADS: Final = {"slack": slack_payload, "teams": teams_payload, "pagerduty": pagerduty_payload}


def _pack(message: AlertDelivery) -> Parcel:
    """Return a message to send.

    Raises:
        Skipped: the receiver may not have it, or the tenant is deleted.
    """
    tenant = message.alert.tenant
    if tenant is not None and tenant.deleted_at is not None:
        raise Skipped("The tenant is deleted.")
    channel = message.channel
    if channel["type"] == "email":
        if tenant is not None:
            _require_reader(channel["to"], tenant.pk)
        return _pack_mail(message)
    if channel["type"] == "webhook":
        body, signed_at = dump_json(webhook_payload(message)), now()
    else:
        body, signed_at = dump_json(_PAYLOADS[channel["type"]](message)), None
    host = urlsplit(channel["url"]).netloc
    # Another tenant's receiver at the same host may be well.
    receiver = f"{message.alert.tenant_id} {host}"
    return Parcel(receiver=receiver, send=lambda _: _post(message, body, signed_at=signed_at))


def _require_reader(email: str, tenant_id: UUID) -> None:
    """Refuse a receiver who has never signed in, or may not read the tenant's summaries any more."""
    user = User.objects.filter(email=email, is_active=True).first()
    if user is None or not readable_tenants(user).filter(pk=tenant_id).exists():
        raise Skipped("The receiver is not a member who may read this tenant's summaries.")
    if user.last_login is None:
        raise Skipped("The receiver has not signed in yet.")


def _pack_mail(message: AlertDelivery) -> Parcel:
    subject, tenant = unlinked(heading(message)), message.content["tenantName"]
    context = {
        **message.content,
        "tenantName": tenant and named(tenant),
        "heading": subject,
        "service": settings.PUBLIC_BASE_URL,
    }
    mail = compose(to=message.channel["to"], subject=subject, template="alert", context=context)
    return parcel_of(mail, identity=f"alert-{message.pk}")


def _post(message: AlertDelivery, body: bytes, *, signed_at: datetime | None) -> Answer:
    """Send JSON, signed by the scheme of the Standard Webhooks if ``signed_at`` is a time. Return the answer.

    Raises:
        NotSent: the receiver did not answer with 2xx.
    """
    headers = {"Content-Type": "application/json", "User-Agent": "tenantadmin"}
    if signed_at is not None:
        identity, secrets = str(message.pk), signing_secrets(message.alert)
        headers |= {
            "webhook-id": identity,
            "webhook-timestamp": str(int(signed_at.timestamp())),
            "webhook-signature": " ".join(
                Webhook(secret).sign(identity, signed_at, body.decode()) for secret in secrets
            ),
        }
    answer = outgoing.post(
        message.channel["url"],
        body=body,
        headers=headers,
        seconds=WEB.seconds,
        exceptions=outgoing.parse_exceptions(tuple(settings.WEBHOOK_EXCEPTIONS)),
    )
    if 300 <= answer.status < 400:
        reason = f"The receiver redirects (status {answer.status}). Give the address that it redirects to."
    elif not 200 <= answer.status < 300:
        reason = f"The receiver answered with status {answer.status}."
    else:
        return answer
    raise NotSent(reason, has_answered=True, retry_after=answer.retry_after)


_MAILED: Final = Q(channel__type="email")
ALERT_MAILS: Final = Kind(
    name="alert mail", model=AlertDelivery, lane=MAIL, pack=_pack, tenant="alert__tenant_id", waiting=_MAILED
)
ALERT_WEBHOOKS: Final = Kind(
    name="alert", model=AlertDelivery, lane=WEB, pack=_pack, tenant="alert__tenant_id", waiting=~_MAILED
)
