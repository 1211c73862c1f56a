"""Tell owners by mail, once for each personal access token, that it ends within a week."""

from __future__ import annotations

import datetime as dt
import logging
from typing import Final

from django.conf import settings
from django.db.models import F

from accounts.mailing import MailNotSent, send_mail
from accounts.models import PersonalAccessToken
from tenantadmin.lib.core.formats import exact_minute
from tenantadmin.lib.core.mail_text import named
from tenantadmin.lib.core.timestamps import now

logger = logging.getLogger(__name__)

#: The mail is sent this long before the end.
NOTICE: Final = dt.timedelta(days=7)
#: Tokens that were made for less time end without a mail.
_SHORTEST: Final = dt.timedelta(days=30)
#: The most mails of one run.
_MOST: Final = 500


def mail_ending_pats() -> int:
    """Mail the owners of tokens that end within `NOTICE`. Return the number of mails.

    A token is marked before its mail is sent, so a killed worker sends none twice. If the mail server fails,
    the next run tries again.
    """
    if not settings.MAGIC_LINKS_ENABLED:  # without a mail server
        return 0
    ending = PersonalAccessToken.objects.in_force().filter(
        expires_at__lte=now() + NOTICE,
        expires_at__gte=F("created_at") + _SHORTEST,
        end_mailed_at=None,
        owner__is_active=True,
    )
    sent = 0
    for pat in list(ending.select_related("owner").order_by("expires_at", "pk")[:_MOST]):
        row = PersonalAccessToken.objects.filter(pk=pat.pk)
        if not row.filter(end_mailed_at=None).update(end_mailed_at=now()):
            continue  # another worker has it
        try:
            _mail(pat)
        except MailNotSent:
            row.update(end_mailed_at=None)
            break
        sent += 1
    if sent:
        logger.info("Mailed the end of %d personal access tokens", sent)
    return sent


def _mail(pat: PersonalAccessToken) -> None:
    context = {
        "pat": pat,
        "name": named(pat.name),
        "ends": exact_minute(pat.expires_at),
        "link": f"{settings.DASHBOARD_URL}#/account",
        "service": settings.PUBLIC_BASE_URL,
    }
    send_mail(
        to=pat.owner.email,
        subject=f"Your personal access token {named(pat.name)} ends soon",
        template="pat-end",
        context=context,
        headers={"Auto-Submitted": "auto-generated"},
    )
