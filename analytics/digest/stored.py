"""Read stored digests, and render them in the requested form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, Final
from uuid import UUID  # noqa: TC003  # of a struct

import msgspec
from django.urls import reverse
from msgspec import Meta

from accounts.models import Tenant
from analytics.digest.document import DigestHead, SectionText
from analytics.digest.facts import LEAKS, ShownFact, show_facts
from analytics.digest.rendering import as_markdown, as_text
from analytics.models import Digest
from tenantadmin.lib.core.errors import NotFound
from tenantadmin.lib.core.rendering import strong_etag
from tenantadmin.lib.core.structs import JsonStruct
from tenantadmin.lib.core.timestamps import Timestamp, format_timestamp
from tenantadmin.lib.http.hal import Link, link

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from analytics.reports.leaks import Closing

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
