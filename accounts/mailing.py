"""Mails to one address, as text and as HTML: sent at once, or put into the outbox."""

from __future__ import annotations

import logging
import smtplib
from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import partial
from typing import Any, ClassVar, Final
from urllib.parse import urlsplit
from uuid import UUID

from celery import shared_task
from django.conf import settings
from django.core.mail import EmailMultiAlternatives, get_connection
from django.core.mail.backends.smtp import EmailBackend as SmtpBackend
from django.template.loader import render_to_string

from accounts.models import Mail
from tenantadmin.lib.core.errors import ApiError
from tenantadmin.lib.core.metrics import count_mails
from tenantadmin.lib.core.outgoing import NotSent
from tenantadmin.lib.core.timestamps import now
from tenantadmin.lib.jobs import outbox
from tenantadmin.lib.jobs.outbox import MAIL, Kind, Parcel

logger = logging.getLogger(__name__)

_RETENTION: Final = timedelta(days=30)
#: Errors with which a mail server refuses a mail. After any other it may have accepted it.
_REFUSALS: Final = (
    smtplib.SMTPResponseException,
    smtplib.SMTPRecipientsRefused,
    smtplib.SMTPNotSupportedError,
)


class MailNotSent(ApiError):
    """The mail server refused the message or did not answer."""

    status: ClassVar[int] = 502
    code: ClassVar[str] = "identity_provider_error"
    message: ClassVar[str] = "The mail could not be sent. Try again later."


def send_mail(
    *,
    to: str,
    subject: str,
    template: str,
    context: Mapping[str, Any],
    headers: Mapping[str, str] | None = None,
) -> None:
    """Send the templates ``mail/<template>.txt`` and ``.html``. No header may hold the line breaks of a name.

    Raises:
        MailNotSent: the mail server failed.
    """
    message = compose(to=to, subject=subject, template=template, context=context)
    message.extra_headers |= headers or {}
    try:
        message.send()
    except (OSError, smtplib.SMTPException) as error:
        logger.exception("A mail (%s) could not be sent", template)
        raise MailNotSent from error


def mail_later(
    *,
    to: str,
    subject: str,
    template: str,
    context: Mapping[str, Any],
    tenant_id: UUID | None = None,
) -> None:
    """Put a mail into the outbox, in the present transaction. Without a mail server, do nothing."""
    if not settings.MAGIC_LINKS_ENABLED:
        return
    message = compose(to=to, subject=subject, template=template, context=context)
    (html, _), *_ = message.alternatives
    subject, text = str(message.subject), str(message.body)
    outbox.put([Mail(to=to, subject=subject, text=text, html=str(html), tenant_id=tenant_id)])


@shared_task
def deliver_mail(*, to: str, subject: str, template: str, context: Mapping[str, Any]) -> None:
    """Put a mail into the outbox that a process of the previous release wants to be sent."""
    mail_later(to=to, subject=subject, template=template, context=context)


def delete_old_mails() -> None:
    """Delete the mails that were put into the outbox more than `_RETENTION` ago."""
    Mail.objects.filter(created_at__lt=now() - _RETENTION).delete()


def compose(*, to: str, subject: str, template: str, context: Mapping[str, Any]) -> EmailMultiAlternatives:
    """Return a mail of the templates ``mail/<template>.txt`` and ``.html``."""
    content = dict(context)
    message = EmailMultiAlternatives(
        subject=" ".join(subject.split()),
        body=render_to_string(f"mail/{template}.txt", content),
        to=[to],
    )
    message.attach_alternative(render_to_string(f"mail/{template}.html", content), "text/html")
    return message


def parcel_of(message: EmailMultiAlternatives, *, identity: str) -> Parcel:
    """Return a mail as a parcel. ``identity`` is the same in each attempt, and for no other mail."""
    host = urlsplit(settings.PUBLIC_BASE_URL).hostname
    message.extra_headers |= {"Message-ID": f"<{identity}@{host}>", "Auto-Submitted": "auto-generated"}
    return Parcel(receiver="mail server", send=partial(_hand_over, message))


def _hand_over(message: EmailMultiAlternatives, go: Callable[[], None]) -> None:
    """Give a mail to the mail server, after calling ``go``.

    Raises:
        NotSent: it cannot be reached, refuses the mail, or does not say whether it accepts it.
    """
    if not settings.MAGIC_LINKS_ENABLED:
        raise NotSent("The service has no mail server.")
    connection = get_connection()
    try:
        try:
            # A server that does not greet has not accepted the mail.
            connection.open()
            if isinstance(connection, SmtpBackend) and connection.connection is not None:
                connection.connection.ehlo_or_helo_if_needed()
        except (OSError, smtplib.SMTPException) as error:
            count_mails(state="failed", count=1)
            raise NotSent("The mail server does not answer.") from error
        go()
        message.connection = connection
        try:
            message.send()
        except _REFUSALS as error:
            raise NotSent("The mail server refused the mail.", has_answered=True) from error
        except (OSError, smtplib.SMTPException) as error:
            raise NotSent("The connection to the mail server ended before it answered.") from error
    finally:
        connection.close()


def _pack(mail: Mail) -> Parcel:
    message = EmailMultiAlternatives(subject=mail.subject, body=mail.text, to=[mail.to])
    message.attach_alternative(mail.html, "text/html")
    return parcel_of(message, identity=f"mail-{mail.pk}")


#: The mails of `mail_later`.
MAILS: Final = Kind(name="mail", model=Mail, lane=MAIL, pack=_pack)
