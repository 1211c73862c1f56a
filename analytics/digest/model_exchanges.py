"""What earlier releases sent to a language model about a tenant. It is listed as long as audits are kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

from django.conf import settings
from msgspec import Meta

from analytics.models import ModelExchange
from tenantadmin.lib.core.structs import JsonStruct, one_of
from tenantadmin.lib.core.timestamps import Timestamp, now

if TYPE_CHECKING:
    from uuid import UUID

#: The most exchanges in one list of the API.
_LISTED: Final = 100


class ModelExchangeDocument(JsonStruct):
    """One request to the language model, and its answer."""

    id: int
    period: Annotated[str, Meta(description="Of the digest.")]
    sent_at: Timestamp
    address: Annotated[str, Meta(description="Where it was sent.")]
    request: Annotated[Any, Meta(description="The whole body that was sent.")]
    answer: str
    outcome: Annotated[str, one_of(ModelExchange.Outcome.values)]
    reason: Annotated[str | None, Meta(description="Why it was refused, or what failed.")]


def list_exchanges(tenant: UUID) -> list[ModelExchangeDocument]:
    """Return the newest exchanges with the language model for a tenant."""
    return [
        ModelExchangeDocument.of(row, reason=row.reason or None)
        for row in ModelExchange.objects.filter(tenant_id=tenant)[:_LISTED]
    ]


def delete_old_exchanges() -> None:
    """Delete the exchanges that are older than `AUDIT_RETENTION_DAYS`."""
    ModelExchange.objects.filter(sent_at__lt=now() - settings.AUDIT_RETENTION).delete()
