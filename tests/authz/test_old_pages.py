"""What the staff's own pages of a tenant showed, and the operations that give it to staff in the dashboard.

The pages are those of release 0.2. Written by hand: what staff could not read there they cannot read now.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

import pytest
from django.urls import get_resolver

from accounts.access.scopes import Level, Scope
from tests.authz.callers import Caller, Stage
from tests.authz.sending import OPERATIONS, POLICIES, REFUSED, STAFF, send
from tests.conftest import ApiClient

pytestmark = pytest.mark.django_db

#: Who saw what a page showed: all staff, or who had taken access to the tenant's log.
ALL: Final = frozenset(STAFF)
ACCESS: Final = frozenset({"staff with access", "support with access"})
SUPPORT: Final = frozenset({"support", "support with access"})


@dataclass(frozen=True, slots=True)
class Shown:
    """What some pages showed to some staff, and the operations that give it now."""

    pages: str
    what: str
    to: AbstractSet[str]
    operations: str
    #: Who saw it and reads it no more.
    lost: AbstractSet[str] = frozenset()


OLD: Final = (
    Shown(
        "tenant",
        "figures of days, of rules and of statements, changes, the verdict, savings, FQDNs",
        ALL,
        "getActivity getTimeline getRuleActivity listPrograms listStatements getVerdict getSavings getSetup "
        "getDailySummary getMonthlySummary getYearlySummary getRuleEffectiveness",
    ),
    Shown("tenant-rules tenant-rules-add tenant-rule", "rules and drafts", ALL, "getTenantRules listDrafts"),
    Shown("tenant-rules-trace", "why a pasted request is cached or not", ALL, "explainRequest"),
    Shown(
        "tenant-rules-trace",
        "logged requests",
        ACCESS,
        "explainLoggedRequest listRequests getRequestHistogram",
    ),
    Shown(
        "tenant-draft tenant-draft-rebase tenant-draft-publish tenant-draft-delete",
        "a draft and its replays",
        ALL,
        "getDraft diffDraft listReplays getReplay",
    ),
    Shown(
        "tenant-history tenant-restore",
        "revisions, their differences, and who changed which value last",
        ALL,
        "listRulesHistory getRulesRevision diffRules blameRules "
        "listConfigHistory getConfigRevision diffConfig",
    ),
    Shown(
        "tenant-markers tenant-marker-remove tenant-invalidate",
        "markers, and what one would end",
        ALL,
        "listMarkers getMarker previewInvalidation previewTableInvalidation",
    ),
    Shown(
        "tenant-insights tenant-advice-accept tenant-advice-draft tenant-advice-dismiss tenant-advice-reopen",
        "recommendations with their statements and effects",
        ALL,
        "listRecommendations getRecommendation getRecommendationEffect getCacheOpportunities",
    ),
    Shown("tenant-digests", "digests", ALL, "getDailyDigest getWeeklyDigest"),
    Shown("tenant-reports", "hits that were older than their tables", ALL, "getStaleReport"),
    Shown("tenant-reports", "users whose results others got", ACCESS, "getLeaksReport"),
    Shown("tenant-reports", "which users ask, and what they cost", ACCESS, "listUserActivity"),
    Shown("tenant-savings", "what the cache saves on the bill", ALL, "getSavings"),
    Shown("tenant-verify", "whether a document equals the log", ACCESS, "verifyDocument"),
    Shown("tenant-alerts", "alerts", ALL, "listAlerts getAlert listAlertHistory listAlertDeliveries"),
    Shown(
        "tenant-sql tenant-sql-cancel",
        "the log",
        ACCESS,
        "queryLogs getQuerySchema listLogYears listLogMonths listLogDays listLogHours listLogFiles "
        "getLogObject",
    ),
    Shown(
        "tenant-sql",
        "what each user did",
        ACCESS,
        "getUsersSummary getUserYearlySummary getUserMonthlySummary getUserDailySummary",
    ),
    Shown("tenant-config", "the configuration", ALL, "getTenant getTenantConfig"),
    Shown(
        "tenant-people",
        "invitations and requests for access",
        ALL,
        "listInvitations listAccessRequests",
        lost=SUPPORT,
    ),
    # Not pages of a tenant, but the lists of all records.
    Shown("lists", "metadata of cached results", ALL, "listCacheMetadata getCacheMetadata"),
    # Newer than those pages: from recommendations and a replay.
    Shown("lists", "the report of an assessment", ALL, "getAssessment"),
    Shown("lists", "texts that a language model wrote", ALL, "listModelExchanges", lost=SUPPORT),
)
#: Pages of a tenant that the admin site keeps.
KEPT: Final = (
    "tenant tenant-open tenant-builds tenant-quarantine tenant-quarantined-entry tenant-rebuild "
    "tenant-people tenant-revoke tenant-member tenant-access tenant-access-end tenant-access-ask "
    "tenant-access-withdraw tenant-access-approve tenant-undelete tenant-engine"
)
#: What reads although it is a POST.
POSTED: Final = frozenset(
    {
        *("queryLogs", "explainLoggedRequest", "explainRequest", "verifyDocument"),
        *("previewInvalidation", "previewTableInvalidation"),
    }
)
READING: Final = {
    operation.name: operation
    for operation in OPERATIONS
    if POLICIES[operation.name].level is Level.TENANT
    and (operation.method == "GET" or operation.name in POSTED)
}


@pytest.fixture(scope="module")
def tokens(stage: Stage, django_db_blocker: Any) -> Stage:
    """The stage with the token of the widest rights that each session of staff may make for the tenant."""
    made = {}
    with django_db_blocker.unblock():
        for name in STAFF:
            caller = ApiClient(stage.callers[name].token)
            body = {"name": "x", "tenants": [str(stage.tenant.pk)]}

            def ask(*scopes: str, caller: ApiClient = caller, body: dict[str, Any] = body) -> Any:
                return caller.post("/users/me/tokens", {**body, "scopes": scopes})

            scopes = [scope for scope in Scope if ask(scope).status_code == HTTPStatus.CREATED]
            pat = {"grant_type": "pat_exchange", "pat": ask(*scopes).json()["token"]}
            token = ApiClient(None).post("/oauth/token", pat).json()["access_token"]
            made[f"token of {name}"] = Caller(stage.callers[name].email, token)
    return Stage(stage.account, stage.tenant, stage.callers | made)


def reads(tokens: Stage, name: str) -> set[str]:
    """Return the staff who read what an operation gives, by their session or by a token that it makes."""

    def is_answered(caller: str) -> bool:
        answer = send(READING[name], tokens, caller, headers={"X-Reason": "ticket%2042"})
        return answer.status_code not in REFUSED

    return {staff for staff in STAFF if is_answered(staff) or is_answered(f"token of {staff}")}


@pytest.mark.parametrize("shown", OLD, ids=lambda shown: f"{shown.pages.split()[0]}: {shown.what}")
def test_staff_read_in_the_dashboard_what_they_saw_and_no_more(tokens: Stage, shown: Shown) -> None:
    for name in shown.operations.split():
        assert reads(tokens, name) == shown.to - shown.lost, name


def test_the_table_has_every_operation_that_reads_of_a_tenant() -> None:
    assert {name for shown in OLD for name in shown.operations.split()} == set(READING)


def test_each_page_of_a_tenant_is_in_the_table() -> None:
    known = {name for shown in OLD for name in shown.pages.split()} | set(KEPT.split())
    names = get_resolver("tenantadmin.backoffice.urls").reverse_dict
    pages = {name for name in names if isinstance(name, str) and "tenant" in names.getlist(name)[0][0][0][1]}
    assert pages <= known
