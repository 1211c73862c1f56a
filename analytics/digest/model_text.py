"""The wordings that a language model chooses for a digest: the opt-in, the request and the result."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Annotated, Any, Final

from django.conf import settings
from msgspec import Meta

from accounts.models import TenantConfig
from analytics.digest.language_model import (
    ChoiceRefused,
    ModelFailed,
    is_configured,
    make_request,
    read_choice,
    send_request,
)
from analytics.models import ModelExchange
from tenantadmin.lib.core.structs import JsonStruct, one_of
from tenantadmin.lib.core.timestamps import Timestamp, now

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from analytics.digest.facts import Section

logger = logging.getLogger(__name__)

#: A tenant opts in with this label of its configuration.
LABEL: Final = "llm"
ON: Final = "on"
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


def choose_texts(tenant: UUID, period: str, sections: Sequence[Section]) -> list[str] | None:
    """Return the texts of a digest's sections in the wordings that the model chose; None: show the templates.

    The request is stored before it is sent. A request that already has an answer is not sent again.
    """
    if not is_configured() or not _has_opted_in(tenant):
        return None
    request = make_request(sections)
    exchange = (
        ModelExchange.objects.filter(
            tenant_id=tenant,
            period=period,
            request=request,
            outcome__in=[ModelExchange.Outcome.ACCEPTED, ModelExchange.Outcome.REFUSED],
        )
        .order_by("-sent_at", "-pk")
        .first()
    )
    is_new = exchange is None
    if exchange is None:
        exchange = ModelExchange.objects.create(
            tenant_id=tenant, period=period, address=settings.LLM_URL, request=request
        )
    texts = None
    try:
        if is_new:
            exchange.answer = send_request(request)
        texts = read_choice(exchange.answer, sections)
        exchange.outcome, exchange.reason = ModelExchange.Outcome.ACCEPTED, ""
    except ModelFailed as error:
        texts, exchange.outcome, exchange.reason = None, ModelExchange.Outcome.FAILED, str(error)
    except ChoiceRefused as error:
        texts, exchange.outcome, exchange.reason = None, ModelExchange.Outcome.REFUSED, str(error)
    exchange.save(update_fields=["answer", "outcome", "reason"])
    if texts is None:
        logger.warning("The digest %s of tenant %s keeps its templates: %s", period, tenant, exchange.reason)
    return texts


def list_exchanges(tenant: UUID) -> list[ModelExchangeDocument]:
    """Return the newest exchanges with the language model for a tenant."""
    return [
        ModelExchangeDocument.of(row, reason=row.reason or None)
        for row in ModelExchange.objects.filter(tenant_id=tenant)[:_LISTED]
    ]


def delete_old_exchanges() -> None:
    """Delete the exchanges that are older than `AUDIT_RETENTION_DAYS`."""
    ModelExchange.objects.filter(sent_at__lt=now() - settings.AUDIT_RETENTION).delete()


def _has_opted_in(tenant: UUID) -> bool:
    document = TenantConfig.objects.filter(tenant=tenant).values_list("document", flat=True).first()
    return bool((document or {}).get("labels", {}).get(LABEL) == ON)
