"""The report of an assessment, and the assessments of a caller.

Web processes read them, so this module imports nothing that reads histories.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final
from uuid import UUID

from msgspec import Meta

from accounts.access.scopes import Scope
from accounts.models import Tenant
from accounts.tenants.warehouse_urls import ADAPTER_TYPES
from analytics.models import Assessment
from analytics.replay.result import Billed
from rules.diff import StoredRule
from tenantadmin.lib.core.errors import NotFound
from tenantadmin.lib.core.structs import Count, JsonStruct, one_of, sent_as
from tenantadmin.lib.core.timestamps import Timestamp

if TYPE_CHECKING:
    from accounts.access.principal import Principal

#: The most that are listed.
MAX_LISTED: Final = 200
#: What may explain that a bill differs from the model.
CAUSES: Final = {
    "no-statement-in-history": "this history has no statement of it",
    "size-unknown": "its size is not known",
    "several-sizes": "it had several sizes",
    "several-clusters": "it had several clusters",
    "work-past-this-history": "work that is not in this history kept it awake",
    "suspends-earlier": "it suspends earlier",
}
_Share = Annotated[float, Meta(ge=0, le=1)]


class NoAssessment(NotFound):
    message = "This tenant is no assessment."


class AssessedDays(JsonStruct):
    """The first and the last day with entries (UTC)."""

    from_: dt.date
    to: dt.date


class ReadStatements(JsonStruct):
    """How many statements the files have, and what was left out of which numbers."""

    rows: Count
    imported: Annotated[Count, Meta(description="Those of the log; one that files share counts once.")]
    result_cache: Annotated[Count, Meta(description="The warehouse's own cache of results answered them.")]
    failed: Count
    truncated: Annotated[Count, Meta(description="The source cut their text: only their time counts.")]
    unparsed: Annotated[Count, Meta(description="They keep their text, and have no tables.")]


class Repeats(JsonStruct):
    """Shares of statements before which an equal one began, with the same literals."""

    hour: _Share
    day: _Share


class MeteredDay(JsonStruct):
    """What a warehouse billed on a day, beside the model."""

    host: str
    day: dt.date
    model_ms: Count
    metered: Annotated[str | None, Meta(description="Credits or DBU. Null of events.")]
    metered_ms: Annotated[Count | None, Meta(description="Null if the size of the warehouse is not known.")]
    ratio: Annotated[float | None, Meta(description="`meteredMs` by `modelMs`.")]
    why: Annotated[list[str], Meta(description="Codes of what may explain a difference.")]
    in_words: Annotated[str, Meta(description="`why`, to read.")]


class AssessedBill(JsonStruct):
    """What the days of the replay bill with the rules and without."""

    days: Count
    with_rules: Billed
    without: Billed
    saved: Billed
    saved_per_month: Annotated[Billed, Meta(description="Of 30 days.")]
    metering: Annotated[list[MeteredDay] | None, Meta(description="Null without a file of it.")]


class AssessmentReport(JsonStruct):
    """What `manage.py assess` reports. docs/assess.md says how exact it is."""

    tenant_id: UUID
    url: Annotated[str, Meta(description="Of its page in the dashboard.")]
    window: AssessedDays
    read: ReadStatements
    repeats: Repeats
    rules: Annotated[list[StoredRule], Meta(description="All rules that were found, in order.")]
    replay: Annotated[
        dict[str, Any],
        sent_as("analytics.replay.runs.Replay"),
        Meta(description="Of all rules together."),
    ]
    bill: AssessedBill
    notes: Annotated[list[str], Meta(description="What is missing, and why some statements got no rule.")]


class AssessmentHead(JsonStruct):
    """An assessment without its report."""

    tenant_id: UUID
    name: str
    source: Annotated[str, one_of(ADAPTER_TYPES)]
    created_at: Timestamp


class AssessmentDocument(AssessmentHead):
    """An assessment: a tenant whose log is a warehouse's own history."""

    report: Annotated[
        Annotated[dict[str, Any], sent_as("analytics.assessments.report.AssessmentReport")] | None,
        Meta(description="Null until the command has ended once."),
    ]


def list_assessments(principal: Principal) -> Sequence[AssessmentHead]:
    """Return the newest assessments in the caller's scope, without their reports."""
    tenants = Tenant.objects.live().assessments().with_scope(Scope.CONFIG_READ, principal.on_listed_tenants)
    rows = Assessment.objects.filter(tenant_id__in=tenants.values("pk")).defer("report", "files")
    return [AssessmentHead.of(row) for row in rows[:MAX_LISTED]]


def read_assessment(tenant_id: UUID) -> AssessmentDocument:
    """Return an assessment with its last report.

    Raises:
        NoAssessment: the tenant is a customer's, or does not exist.
    """
    live = Tenant.objects.live().assessments().values("pk")
    row = Assessment.objects.filter(pk=tenant_id, tenant_id__in=live).defer("files").first()
    if row is None:
        raise NoAssessment
    return AssessmentDocument.of(row)
