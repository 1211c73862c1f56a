"""Send one mail to one address, as text and as HTML."""

from __future__ import annotations

import logging
import smtplib
from typing import TYPE_CHECKING, Any, ClassVar

from django.core.mail import EmailMultiAlternatives
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
    """Send the templates ``mail/<template>.txt`` and ``.html``.

    Raises:
        MailNotSent: the mail server failed.
    """
    content = dict(context)
    message = EmailMultiAlternatives(
        subject=subject,
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
