"""Mail each digest once to each user who chose to get it.

A mail is a row before it is sent. The row changes to `sending` just before the mail server gets the mail.
From then on it is never sent again: after a worker was killed, it is unknown whether the server accepted the
mail.
"""

from __future__ import annotations

import hashlib
import logging
import smtplib
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from django.conf import settings
from django.core.mail import EmailMultiAlternatives, get_connection
from django.core.mail.backends.smtp import EmailBackend as SmtpBackend
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.http import urlencode

from analytics.digest.facts import NameKind
from analytics.digest.preferences import readable_tenants, unsubscribe_token
from analytics.digest.rendering import as_html_sections, as_text, digest_title
from analytics.models import Digest, DigestFrequency, DigestMail, DigestPreference
from tenantadmin.lib.core.mail_text import unlinked
from tenantadmin.lib.core.timestamps import now

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.db.models import QuerySet

    from accounts.models import Tenant

logger = logging.getLogger(__name__)

_MAX_ATTEMPTS: Final = 8
#: After refusal number n, a mail waits 2 to the power of n minutes.
_FIRST_WAIT: Final = timedelta(minutes=1)
#: The most mails of one run.
_MOST: Final = 500
#: The page of statements filters by no longer part.
_MOST_CHARACTERS: Final = 1000
#: Errors that mean that the mail server refused. After any other error it may have accepted the mail.
_REFUSALS: Final = (
    smtplib.SMTPResponseException,
    smtplib.SMTPRecipientsRefused,
    smtplib.SMTPNotSupportedError,
)


def queue_mails(digest: Digest) -> None:
    """Queue a mail for each subscriber of this digest. Call it in the transaction that stores the digest."""
    users = _subscriptions(digest).values_list("user_id", flat=True)
    DigestMail.objects.bulk_create(
        [DigestMail(tenant_id=digest.tenant_id, period=digest.period, user_id=user) for user in users],
        ignore_conflicts=True,
    )


def send_mails() -> int:
    """Send the queued mails that are due. Return the number of sent mails.

    Raises:
        OSError, SMTPException: the mail server cannot be reached. The remaining mails stay queued.
    """
    if not settings.MAGIC_LINKS_ENABLED:  # without a mail server
        return 0
    due = (
        DigestMail.objects.filter(state=DigestMail.State.QUEUED, due_at__lte=now())
        .select_related("user")
        .order_by("due_at", "pk")[:_MOST]
    )
    sent = 0
    for mail in list(due):
        message = _write_message(mail)
        if message is None:
            _move(mail, DigestMail.State.QUEUED, DigestMail.State.SKIPPED)
            continue
        # Connect before the row changes: a server that does not greet has not accepted the mail.
        message.connection = get_connection()
        try:
            message.connection.open()
            if isinstance(message.connection, SmtpBackend) and message.connection.connection is not None:
                message.connection.connection.ehlo_or_helo_if_needed()
            if _move(mail, DigestMail.State.QUEUED, DigestMail.State.SENDING):
                sent += _send(mail, message)
        finally:
            message.connection.close()
    return sent


def _send(mail: DigestMail, message: EmailMultiAlternatives) -> bool:
    """Send a mail in state `sending`. Return True if the server accepted it."""
    try:
        message.send()
    except _REFUSALS as error:
        logger.warning("The mail server refused a digest: %s", type(error).__name__)
        attempts = mail.attempts + 1
        state = DigestMail.State.FAILED if attempts >= _MAX_ATTEMPTS else DigestMail.State.QUEUED
        due_at = now() + _FIRST_WAIT * 2**attempts
        _move(mail, DigestMail.State.SENDING, state, attempts=attempts, due_at=due_at)
        return False
    _move(mail, DigestMail.State.SENDING, DigestMail.State.SENT, sent_at=now())
    return True


def _move(mail: DigestMail, before: DigestMail.State, after: DigestMail.State, **fields: object) -> bool:
    """Change the state of a mail. Return False if another worker changed it first."""
    rows = DigestMail.objects.filter(pk=mail.pk, state=before)
    return bool(rows.update(state=after, **fields))


def _write_message(mail: DigestMail) -> EmailMultiAlternatives | None:
    """Return the message, or None if the user may not read the digest or has unsubscribed."""
    digest = Digest.objects.filter(tenant_id=mail.tenant_id, period=mail.period).first()
    tenant = readable_tenants(mail.user).filter(pk=mail.tenant_id).first() if mail.user.is_active else None
    if digest is None or tenant is None or not _subscriptions(digest).filter(user=mail.user).exists():
        return None
    token = unsubscribe_token(user_id=mail.user.pk, tenant_id=tenant.pk)
    link = f"{settings.PUBLIC_BASE_URL}{reverse('digest-unsubscribe')}?{urlencode({'t': token})}"
    name = unlinked(tenant.name)
    title = digest_title(digest.document, tenant=name)
    context = {
        "title": title,
        "sections": as_html_sections(
            digest.document, digest.texts, link_name=lambda name: _link_statement(digest, name)
        ),
        "text": as_text(digest.document, digest.texts, tenant=name),
        "is_rewritten": digest.rewritten is not None,
        "unsubscribe": link,
        "service": settings.PUBLIC_BASE_URL,
    }
    message = EmailMultiAlternatives(
        subject=title,
        body=render_to_string("mail/digest.txt", context),
        to=[mail.user.email],
        headers={
            "Message-ID": _message_id(mail, tenant),
            "List-Unsubscribe": f"<{link}>",
            "List-Unsubscribe-Post": "List-Unsubscribe=One-Click",
            "Auto-Submitted": "auto-generated",
        },
    )
    message.attach_alternative(render_to_string("mail/digest.html", context), "text/html")
    return message


def _link_statement(digest: Digest, name: Mapping[str, Any]) -> str | None:
    """Return the dashboard's address of a statement, or None for another name."""
    if name["kind"] != NameKind.STATEMENT:
        return None
    days = (digest.last_day - digest.first_day).days + 1
    chosen = {"day": digest.last_day, "days": days, "statement": name["value"][:_MOST_CHARACTERS]}
    return f"{settings.DASHBOARD_URL}#/t/{digest.tenant_id}/statements?{urlencode(chosen)}"


def _subscriptions(digest: Digest) -> QuerySet[DigestPreference]:
    """Return the preferences of active users who chose to get this digest."""
    is_week = digest.first_day != digest.last_day
    frequency = DigestFrequency.WEEKLY if is_week else DigestFrequency.DAILY
    return DigestPreference.objects.filter(tenant=digest.tenant_id, frequency=frequency, user__is_active=True)


def _message_id(mail: DigestMail, tenant: Tenant) -> str:
    """Return an id that is the same for the same digest and user, in case a mail is delivered twice."""
    text = f"{tenant.pk} {mail.period} {mail.user.pk} {mail.user.email}"
    host = urlsplit(settings.PUBLIC_BASE_URL).hostname
    return f"<digest-{hashlib.sha256(text.encode()).hexdigest()[:32]}@{host}>"
