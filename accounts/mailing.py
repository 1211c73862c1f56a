"""Send one mail to one address, as text and as HTML."""

from __future__ import annotations

import logging
import smtplib
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from celery import shared_task
from django.conf import settings
from django.core.mail import EmailMultiAlternatives
from django.db import transaction
from django.template.loader import render_to_string

from tenantadmin.lib.core.errors import ApiError

if TYPE_CHECKING:
    from collections.abc import Mapping

logger = logging.getLogger(__name__)


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
    content = dict(context)
    message = EmailMultiAlternatives(
        subject=" ".join(subject.split()),
        body=render_to_string(f"mail/{template}.txt", content),
        to=[to],
        headers=dict(headers or {}),
    )
    message.attach_alternative(render_to_string(f"mail/{template}.html", content), "text/html")
    try:
        message.send()
    except (OSError, smtplib.SMTPException) as error:
        logger.exception("A mail (%s) could not be sent", template)
        raise MailNotSent from error


def mail_later(*, to: str, subject: str, template: str, context: Mapping[str, Any]) -> None:
    """Let a worker send a mail after the present transaction. It tries again for a day."""
    send = partial(deliver_mail.delay, to=to, subject=subject, template=template, context=dict(context))
    transaction.on_commit(send, robust=True)


@shared_task(autoretry_for=(MailNotSent,), retry_backoff=30, retry_backoff_max=3600, max_retries=24)
def deliver_mail(*, to: str, subject: str, template: str, context: Mapping[str, Any]) -> None:
    """Send a mail, unless no mail server is configured."""
    if settings.MAGIC_LINKS_ENABLED:
        send_mail(to=to, subject=subject, template=template, context=context)
