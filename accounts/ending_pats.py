"""Tell owners by mail, once for each personal access token, that it ends within a week."""

from __future__ import annotations

import datetime as dt
from typing import Final

from django.conf import settings
from django.db import transaction
from django.db.models import F

from accounts.mailing import mail_later
from accounts.models import PersonalAccessToken
from tenantadmin.lib.core.emails import named
from tenantadmin.lib.core.formats import exact_minute
from tenantadmin.lib.core.timestamps import now

#: The mail is sent this long before the end.
NOTICE: Final = dt.timedelta(days=7)
#: Tokens that were made for less time end without a mail.
_SHORTEST: Final = dt.timedelta(days=30)
#: The most mails of one run.
_MOST: Final = 500


def mail_ending_pats() -> int:
    """Mail the owners of tokens that end within `NOTICE`. Return the number of mails.

    A token is marked in the transaction that puts its mail into the outbox.
    """
    if not settings.MAGIC_LINKS_ENABLED:  # without a mail server
        return 0
    ending = PersonalAccessToken.objects.in_force().filter(
        expires_at__lte=now() + NOTICE,
        expires_at__gte=F("created_at") + _SHORTEST,
        end_mailed_at=None,
        owner__is_active=True,
    )
    with transaction.atomic():
        rows = ending.select_for_update(no_key=True, skip_locked=True, of=("self",)).select_related("owner")
        pats = list(rows.order_by("expires_at", "pk")[:_MOST])
        for pat in pats:
            _mail(pat)
        PersonalAccessToken.objects.filter(pk__in=[pat.pk for pat in pats]).update(end_mailed_at=now())
    return len(pats)


def _mail(pat: PersonalAccessToken) -> None:
    context = {
        "pat": pat,
        "name": named(pat.name),
        "ends": exact_minute(pat.expires_at),
        "link": f"{settings.DASHBOARD_URL}#/account",
        "service": settings.PUBLIC_BASE_URL,
    }
    subject = f"Your personal access token {named(pat.name)} ends soon"
    mail_later(to=pat.owner.email, subject=subject, template="pat-end", context=context)
