"""Digests as people read them: markdown, plain text, mails, and the documents of the API."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final
from uuid import UUID

import msgspec
from django.conf import settings
from django.core.mail import EmailMultiAlternatives
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.html import conditional_escape, format_html
from django.utils.http import urlencode
from django.utils.safestring import SafeString, mark_safe
from msgspec import Meta

from accounts.mailing import parcel_of
from accounts.models import Tenant
from analytics.models import Digest, DigestMail
from analytics.watch.facts import LEAKS, NameKind, ShownFact, fill, show_facts, show_values
from analytics.watch.preferences import digest_tenants, subscriptions, unsubscribe_token
from analytics.watch.sections import DigestHead
from analytics.words.sections import SectionText
from tenantadmin.lib.core.emails import unlinked
from tenantadmin.lib.core.errors import NotFound
from tenantadmin.lib.core.rendering import strong_etag
from tenantadmin.lib.core.structs import JsonStruct
from tenantadmin.lib.core.timestamps import Timestamp, format_timestamp
from tenantadmin.lib.http.hal import Link, link
from tenantadmin.lib.jobs.outbox import MAIL, Kind, Parcel, Skipped

if TYPE_CHECKING:
    from analytics.reports.leaks import Closing


#: The most characters of a statement in a text. The document has the whole statement.
_STATEMENT: Final = 160
#: Statements and rule names come from the log and may contain any character.
_SPACE: Final = re.compile(r"[\s\x00-\x1f\x7f-\x9f]+")
#: Invisible characters, which can change the direction of a text or hide parts of it.
_INVISIBLE: Final = re.compile(
    "[\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202f\u2060-\u206f\ufeff\ufff9-\ufffb]"
)
_BACKTICKS: Final = re.compile("`+")


@dataclass(frozen=True, slots=True)
class ShownSection:
    """A section with its facts and names filled in."""

    id: str
    heading: str
    lines: Sequence[str]


def digest_title(document: Mapping[str, Any], *, tenant: str) -> str:
    """Return the title of a digest for the tenant named ``tenant``."""
    name = _plain(tenant)
    if document["kind"] == "day":
        return f"{name}: digest of {document['period']}"
    return f"{name}: digest of week {document['period']}, {document['from']} to {document['to']}"


def as_text(document: Mapping[str, Any], texts: Sequence[str], *, tenant: str) -> str:
    """Return the digest as plain text. ``texts`` has the template or the rewrite of each section."""
    title = digest_title(document, tenant=tenant)
    parts = [f"{title}\n{'=' * len(title)}"]
    for section in _filled(document, texts, {name["id"]: _text_of(name) for name in document["names"]}):
        lines = "\n".join(f"- {line}" for line in section.lines)
        parts.append(f"{section.heading}\n\n{lines}")
    return "\n\n".join(parts) + "\n"


def as_markdown(document: Mapping[str, Any], texts: Sequence[str], *, tenant: str) -> str:
    """Return the digest as markdown; see `as_text`. Names become code spans, so they contain no markup."""
    parts = [f"# {_escape_markdown(digest_title(document, tenant=tenant))}"]
    for section in _filled(document, texts, {name["id"]: _code_of(name) for name in document["names"]}):
        lines = "\n".join(f"- {line}" for line in section.lines)
        parts.append(f"## {section.heading}\n\n{lines}")
    return "\n\n".join(parts) + "\n"


def as_html_sections(
    document: Mapping[str, Any],
    texts: Sequence[str],
    *,
    link_name: Callable[[Mapping[str, Any]], str | None],
) -> list[ShownSection]:
    """Return the sections as safe HTML; see `as_text`. Names become elements, everything else is escaped.

    ``link_name`` returns the link of a name, or None.
    """
    names = {name["id"]: _element_of(name, link_name) for name in document["names"]}
    # Escaping does not change the braces of the ids.
    escaped = [conditional_escape(text) for text in texts]
    return [
        replace(section, lines=[mark_safe(line) for line in section.lines])  # noqa: S308  # escaped
        for section in _filled(document, escaped, names)
    ]


def _filled(
    document: Mapping[str, Any], texts: Sequence[str], names: Mapping[str, str]
) -> Iterator[ShownSection]:
    values = show_values(document, show_name=lambda name: names[name["id"]]) | dict(names)
    for section, text in zip(document["sections"], texts, strict=True):
        lines = [fill(line, values) for line in text.splitlines() if line]
        yield ShownSection(section["id"], section["heading"], lines)


def _text_of(name: Mapping[str, Any]) -> str:
    text = _plain(name.get("label") or name["value"])
    is_long = name["kind"] == NameKind.STATEMENT and len(text) > _STATEMENT
    return f"{text[:_STATEMENT]}…" if is_long else text


def _element_of(name: Mapping[str, Any], link_name: Callable[[Mapping[str, Any]], str | None]) -> SafeString:
    """Return a name as code, or as a link. A rule has its id in a tooltip."""
    text = _text_of(name)
    if name["kind"] == NameKind.RULE:
        shown = format_html('<strong title="{}">{}</strong>', name["value"], text)
    else:
        shown = format_html("<code>{}</code>", text)
    address = link_name(name)
    if address is None:
        return shown
    return format_html('<a href="{}">{}</a>', address, shown)


def _code_of(name: Mapping[str, Any]) -> str:
    """Return a name as a code span of markdown. The fence is longer than any run of backticks in the name."""
    text = _text_of(name)
    longest = max(map(len, _BACKTICKS.findall(text)), default=0)
    fence = "`" * (longest + 1)
    return f"{fence} {text} {fence}" if longest else f"`{text}`"


def _plain(text: str) -> str:
    """Return a text on one line, without control characters and invisible characters."""
    return _SPACE.sub(" ", _INVISIBLE.sub("", text)).strip()


def _escape_markdown(text: str) -> str:
    return re.sub(r"([\\`*_{}\[\]<>()#+!|~&])", r"\\\1", text)


JSON: Final = "application/json"
#: The forms of a digest besides JSON, by media type.
FORMS: Final[Mapping[str, Callable[..., str]]] = {"text/markdown": as_markdown, "text/plain": as_text}


class DigestLinks(JsonStruct):
    self_: Link
    parent: Link


class DigestSection(SectionText):
    template: Annotated[
        str,
        Meta(description="The same as `text`."),
    ]
    closed_by: Annotated[
        int | None,
        Meta(description="Of leaks: the revision of the rules since which none of them can happen again."),
    ] = None
    closed_by_config: Annotated[
        int | None,
        Meta(description="In place of `closedBy`: the configuration's revision that switched the cache off."),
    ] = None


class DigestDocument(DigestHead):
    """What happened in a day or a week, each number with its SQL."""

    links: DigestLinks = msgspec.field(name="_links")
    tenant_id: UUID
    rewritten: Annotated[bool, Meta(description="Always false.")]
    made_at: Timestamp
    facts: list[ShownFact]
    sections: list[DigestSection]


class DigestNotFound(NotFound):
    message: ClassVar[str] = (
        "There is no digest of this period: it has no log entry, has not ended, or is older than the service "
        "makes digests for."
    )


def read_digest(*, tenant: UUID, period: str) -> Digest:
    """Return the digest of the period with this name.

    Raises:
        DigestNotFound: there is no such digest.
    """
    digest = Digest.objects.filter(tenant_id=tenant, period=period).first()
    if digest is None:
        raise DigestNotFound
    return digest


def etag_of(digest: Digest, media_type: str, closing: Closing | None) -> str:
    """Return the entity tag of a digest in a form. It depends on the tenant's name, which texts contain.

    ``closing`` is the revision that closed its leaks.
    """
    return strong_etag(digest.etag, media_type, _tenant_name(digest), closing)


def digest_document(digest: Digest, closing: Closing | None) -> DigestDocument:
    """Return the digest as the API shows it. ``closing`` is the revision that closed its leaks."""
    own = {"tenant": digest.tenant_id}
    year, *rest = digest.period.split("-")
    if digest.first_day == digest.last_day:
        href = reverse("digest-day", kwargs={**own, "year": year, "month": rest[0], "day": rest[1]})
    else:
        href = reverse("digest-week", kwargs={**own, "year": year, "week": rest[0][1:]})
    head = msgspec.convert(digest.document, DigestHead)
    texts = show_facts(digest.document)
    facts = [ShownFact(**fact, text=texts[fact["id"]]) for fact in digest.document["facts"]]
    return DigestDocument(
        **msgspec.structs.asdict(head),
        facts=facts,
        links=DigestLinks(self_=link(href), parent=link(reverse("tenant", kwargs=own))),
        tenant_id=digest.tenant_id,
        rewritten=False,
        made_at=format_timestamp(digest.made_at),
        sections=[
            DigestSection(
                id=section["id"],
                heading=section["heading"],
                text=section["text"],
                template=section["text"],
                closed_by=closing.rules if closing and section["id"] == LEAKS else None,
                closed_by_config=closing.config if closing and section["id"] == LEAKS else None,
            )
            for section in digest.document["sections"]
        ],
    )


def render_digest(digest: Digest, media_type: str) -> str:
    """Return the digest as markdown or plain text."""
    return FORMS[media_type](digest.document, digest.texts, tenant=_tenant_name(digest))


def _tenant_name(digest: Digest) -> str:
    name = Tenant.objects.filter(pk=digest.tenant_id).values_list("name", flat=True).first()
    return name or str(digest.tenant_id)


#: The page of statements filters by no longer part.
_MOST_CHARACTERS: Final = 1000


def _pack(mail: DigestMail) -> Parcel:
    """Return a mail to send.

    Raises:
        Skipped: the user may not read the digest or has unsubscribed.
    """
    digest = Digest.objects.filter(tenant_id=mail.tenant_id, period=mail.period).first()
    tenant = digest_tenants(mail.user).filter(pk=mail.tenant_id).first() if mail.user.is_active else None
    if digest is None or tenant is None or not subscriptions(digest).filter(user=mail.user).exists():
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


def _identity(mail: DigestMail, tenant: Tenant) -> str:
    """Return an id that is the same for the same digest and user, in case a mail is delivered twice."""
    text = f"{tenant.pk} {mail.period} {mail.user.pk} {mail.user.email}"
    return f"digest-{hashlib.sha256(text.encode()).hexdigest()[:32]}"


DIGEST_MAILS: Final = Kind(name="digest mail", model=DigestMail, lane=MAIL, pack=_pack, is_sent_once=True)
