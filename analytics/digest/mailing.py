"""Mail each digest once to each user who chose to get it.

Once the mail server may have accepted a mail, it is never sent again.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.core.mail import EmailMultiAlternatives
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.http import urlencode

from accounts.mailing import parcel_of
from analytics.digest.facts import NameKind
from analytics.digest.preferences import readable_tenants, unsubscribe_token
from analytics.digest.rendering import as_html_sections, as_text, digest_title
from analytics.models import Digest, DigestFrequency, DigestMail, DigestPreference
from tenantadmin.lib.core.emails import unlinked
from tenantadmin.lib.jobs import outbox
from tenantadmin.lib.jobs.outbox import MAIL, Kind, Parcel, Skipped

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.db.models import QuerySet

    from accounts.models import Tenant

#: The page of statements filters by no longer part.
_MOST_CHARACTERS: Final = 1000


def queue_mails(digest: Digest) -> None:
    """Queue a mail for each subscriber of this digest. Call it in the transaction that stores the digest."""
    users = _subscriptions(digest).values_list("user_id", flat=True)
    outbox.put(
        [DigestMail(tenant_id=digest.tenant_id, period=digest.period, user_id=user) for user in users],
        ignore_conflicts=True,
    )


def _pack(mail: DigestMail) -> Parcel:
    """Return a mail to send.

    Raises:
        Skipped: the user may not read the digest or has unsubscribed.
    """
    digest = Digest.objects.filter(tenant_id=mail.tenant_id, period=mail.period).first()
    tenant = readable_tenants(mail.user).filter(pk=mail.tenant_id).first() if mail.user.is_active else None
    if digest is None or tenant is None or not _subscriptions(digest).filter(user=mail.user).exists():
        raise Skipped("The user may no longer read this digest, or has unsubscribed.")
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
        "unsubscribe": link,
        "service": settings.PUBLIC_BASE_URL,
    }
    message = EmailMultiAlternatives(
        subject=title,
        body=render_to_string("mail/digest.txt", context),
        to=[mail.user.email],
        headers={
            "List-Unsubscribe": f"<{link}>",
            "List-Unsubscribe-Post": "List-Unsubscribe=One-Click",
        },
    )
    message.attach_alternative(render_to_string("mail/digest.html", context), "text/html")
    return parcel_of(message, identity=_identity(mail, tenant))


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


def _identity(mail: DigestMail, tenant: Tenant) -> str:
    """Return an id that is the same for the same digest and user, in case a mail is delivered twice."""
    text = f"{tenant.pk} {mail.period} {mail.user.pk} {mail.user.email}"
    return f"digest-{hashlib.sha256(text.encode()).hexdigest()[:32]}"


DIGEST_MAILS: Final = Kind(name="digest mail", model=DigestMail, lane=MAIL, pack=_pack, is_sent_once=True)
