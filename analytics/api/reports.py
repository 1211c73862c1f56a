"""Reports from the log. Contract: Analytics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.urls import reverse
from rest_framework.response import Response

from accounts.access.policy import Level
from accounts.access.scopes import Scope
from accounts.routes import route
from accounts.viewsets import AppViewSet
from analytics.digest.verdict.leaks import find_closed_of_days
from analytics.reports.blast import (
    InvalidationPreview,
    TableInvalidationPreview,
    preview_invalidation,
    preview_tables,
)
from analytics.reports.leaks import LeaksReport, leaks_report
from analytics.reports.reading import LogReader, Window
from analytics.reports.stale import StaleReport, stale_report
from analytics.reports.timeline import Timeline, timeline
from analytics.reports.traffic import Traffic, TrafficFilter, TrafficLinks, list_traffic
from analytics.savings.document import Savings
from analytics.savings.reading import find_source, read_savings
from analytics.serializers.reports import (
    ActivityParameters,
    ReportParameters,
    SavingsParameters,
    StatementsParameters,
    TimelineParameters,
    TrafficParameters,
)
from analytics.summaries.activity import Activity, read_activity
from analytics.summaries.rule_activity import RuleActivity, read_rule_activity
from analytics.summaries.statements import StatementFilter, StatementList, list_statements
from logs.audit import Reader
from rules.ruleset import read_tables
from rules.serializers import TableInvalidationRequest
from tenantadmin.lib.core.hosts import client_address
from tenantadmin.lib.core.timestamps import days_before, now
from tenantadmin.lib.http.budgets import QUERY
from tenantadmin.lib.http.hal import ETAG, IF_NONE_MATCH, link, next_page, not_modified
from tenantadmin.lib.http.schema import NOT_MODIFIED
from tenantadmin.lib.http.viewsets import operation
from tenantadmin.lib.objectstore import default_store

if TYPE_CHECKING:
    from uuid import UUID

    from rest_framework.request import Request


class ReportViewSet(AppViewSet):
    """Reports on a tenant's log, and the preview of an invalidation."""

    tag = "Reports"
    prefix = "tenants/<uuid:tenant>"

    @route("GET", "/reports/stale", Level.TENANT, Scope.ANALYTICS_READ, name="report-stale")
    @operation(
        summary="Hits whose result is older than a change of a table that they read",
        query=ReportParameters,
        responses={200: StaleReport},
    )
    def get_stale_report(self, request: Request, tenant: UUID) -> Response:
        """By rule, table and changing rule. Changes that do not pass the Gateway are not in the log."""
        return Response(stale_report(self._log(tenant), window=self._window, warehouse=read_tables(tenant)))

    @route(
        "GET",
        "/reports/leaks",
        Level.TENANT,
        Scope.ANALYTICS_USERS,
        members_only=True,
        notes="members, as for raw logs",
        name="report-leaks",
    )
    @operation(
        summary="Cached results that depend on the user and were served to several users",
        query=ReportParameters,
        responses={200: LeaksReport},
    )
    def get_leaks_report(self, request: Request, tenant: UUID) -> Response:
        """By statement and rule. Sharing by itself is what a cache is for; `sharedKeys` is the base rate."""
        return Response(
            leaks_report(
                self._log(tenant),
                window=self._window,
                warehouse=read_tables(tenant),
                closed=find_closed_of_days(tenant, self._window.first, self._window.last),
            )
        )

    @route("GET", "/timeline", Level.TENANT, Scope.ANALYTICS_READ, also=Scope.CONFIG_READ, name="timeline")
    @operation(
        summary="Hits and misses over time, with the changes and markers that fell in it",
        query=TimelineParameters,
        responses={200: Timeline},
    )
    def get_timeline(self, request: Request, tenant: UUID) -> Response:
        """Per hour or day (UTC). What fell into the same time need not be the cause."""
        return Response(timeline(self._log(tenant), window=self._window, step=self.query["step"]))

    @route("GET", "/activity", Level.TENANT, Scope.ANALYTICS_READ, name="activity")
    @operation(
        summary="The requests of each day, and their change against the days before",
        query=ActivityParameters,
        responses={200: Activity},
    )
    def get_activity(self, request: Request, tenant: UUID) -> Response:
        """By what the cache did. Days without requests are left out; at most 366 days."""
        return Response(read_activity(tenant, first=self.query.get("from"), last=self.query.get("to")))

    @route("GET", "/activity/rules", Level.TENANT, Scope.ANALYTICS_READ, name="rule-activity")
    @operation(
        summary="What each rule did in a period",
        budget=QUERY,
        query=ActivityParameters,
        responses={200: RuleActivity},
    )
    def get_rule_activity(self, request: Request, tenant: UUID) -> Response:
        """From the summaries of the days: at most 366. The default is that of `getActivity`."""
        first, last = self.query.get("from"), self.query.get("to")
        return Response(read_rule_activity(default_store(), tenant=tenant, first=first, last=last))

    @route("GET", "/statements", Level.TENANT, Scope.ANALYTICS_READ, name="statements")
    @operation(
        summary="The statements of a few days, with what the cache did for each",
        budget=QUERY,
        query=StatementsParameters,
        responses={200: StatementList},
    )
    def list_statements(self, request: Request, tenant: UUID) -> Response:
        """From the summaries of the days. A mean is the mean of the days, each by its requests."""
        asked, window = self.query, self._window
        return Response(
            list_statements(
                default_store(),
                tenant=tenant,
                first=window.first,
                last=window.last,
                matching=StatementFilter(
                    statement=asked.get("statement"),
                    rule=asked.get("rule"),
                    main_rule=asked.get("mainRule"),
                    status=asked.get("status"),
                ),
                order=asked["order"],
                limit=asked["limit"],
            )
        )

    @route("GET", "/savings", Level.TENANT, Scope.ANALYTICS_READ, name="savings")
    @operation(
        summary="What the cache saves of the time that the warehouse bills",
        budget=QUERY,
        query=SavingsParameters,
        headers=[IF_NONE_MATCH, ETAG],
        responses={200: Savings, 304: NOT_MODIFIED},
    )
    def get_savings(self, request: Request, tenant: UUID) -> Response:
        """Billed time, busy time and money with the cache, without it, and per rule.

        The answer is kept until a build of its days or the prices change. `queries` has the statement that
        gives the times.
        """
        source = find_source(
            tenant=tenant, first=self.query["from"], last=self.query["to"], step=self.query["step"]
        )
        unchanged = not_modified(request, source.etag)
        if unchanged is not None:
            return unchanged
        etag, body = read_savings(default_store(), source, reader=self._reader)
        return Response(body, headers={"ETag": etag})

    @route(
        "POST",
        "/rules/<str:rule>/invalidations/preview",
        Level.TENANT,
        Scope.CACHE_ADMIN,
        name="invalidations-preview",
        needs_no_reason=True,
    )
    @operation(
        summary="What invalidating the targets of a rule would end",
        responses={200: InvalidationPreview},
    )
    def preview_invalidation(self, request: Request, tenant: UUID, rule: str) -> Response:
        """The live results of each target, or of the rule itself if it has no targets. Makes no marker."""
        return Response(preview_invalidation(self._log(tenant), rule_id=rule, now=now()))

    @route(
        "POST",
        "/invalidations/preview",
        Level.TENANT,
        Scope.CACHE_ADMIN,
        name="table-invalidations-preview",
        needs_no_reason=True,
    )
    @operation(
        summary="What invalidating tables would end",
        budget=QUERY,
        body=TableInvalidationRequest,
        responses={200: TableInvalidationPreview},
    )
    def preview_table_invalidation(self, request: Request, tenant: UUID) -> Response:
        """The rules that would get a marker, and their live results. Makes no marker."""
        return Response(preview_tables(self._log(tenant), tables=self.body["tables"], now=now()))

    @route("GET", "/requests", Level.TENANT, Scope.LOGS_QUERY, name="requests")
    @operation(
        summary="The requests of the log, newest first",
        budget=QUERY,
        query=TrafficParameters,
        responses={200: Traffic},
    )
    def list_requests(self, request: Request, tenant: UUID) -> Response:
        """One row per entry of the log. `sql` is the statement that gives the same rows."""
        asked = self.query
        last = asked.get("to", now().date())
        page = list_traffic(
            self._log(tenant),
            window=Window(asked.get("from", days_before(last, 6)), last),
            matching=TrafficFilter(
                status=asked.get("status"),
                rule=asked.get("rule"),
                user=asked.get("user"),
                statement=asked.get("statement"),
                query_hash=asked.get("queryHash"),
                min_ms=asked.get("minMs"),
            ),
            limit=asked["limit"],
            cursor=asked.get("cursor"),
        )
        links = TrafficLinks(
            self_=link(request.get_full_path()),
            parent=link(reverse("tenant", kwargs={"tenant": tenant})),
            next=next_page(request, page.cursor),
        )
        return Response(
            Traffic(
                links=links,
                tenant_id=tenant,
                requests=page.requests,
                sql=page.sql,
                miss_reasons=page.miss_reasons,
            )
        )

    @property
    def _window(self) -> Window:
        return Window(self.query["from"], self.query["to"])

    def _log(self, tenant: UUID) -> LogReader:
        return LogReader(default_store(), tenant, self._reader)

    @property
    def _reader(self) -> Reader:
        return Reader(self.principal.email, client_address(self.request))
