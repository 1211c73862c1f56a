"""Reports, explained requests, and the steps of a new tenant."""

# ruff: noqa: N815  (fields have the names of the JSON members)

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args
from uuid import UUID

from django.urls import reverse
from drf_spectacular.utils import OpenApiExample
from rest_framework.exceptions import ValidationError
from rest_framework.response import Response

from accounts.access.scopes import Level, Scope
from accounts.routes import route
from accounts.serializers.history import PageParameters
from accounts.viewsets import AppViewSet
from analytics.reports.activity import (
    DEFAULT_DAYS,
    NO_RULE,
    Activity,
    RuleActivity,
    StatementFilter,
    StatementList,
    StatementOrder,
    list_statements,
    read_activity,
    read_rule_activity,
)
from analytics.reports.activity import MAX_DAYS as MAX_ACTIVITY_DAYS
from analytics.reports.blast import (
    InvalidationPreview,
    TableInvalidationPreview,
    preview_invalidation,
    preview_tables,
)
from analytics.reports.callers import Callers, find_statements, list_callers
from analytics.reports.explain import SEARCHED_DAYS, LoggedExplanationAnswer, explain_logged
from analytics.reports.histogram import RequestHistogram, make_histogram
from analytics.reports.leaks import LeaksReport, leaks_report
from analytics.reports.reading import MAX_DAYS, LogReader, Span, Window
from analytics.reports.savings import MAX_DAYS as MAX_SAVINGS_DAYS
from analytics.reports.savings import STEPS as SAVINGS_STEPS
from analytics.reports.savings import Savings, find_source, read_savings
from analytics.reports.stale import Setup, StaleReport, read_setup, stale_report
from analytics.reports.timeline import STEPS, Timeline, timeline
from analytics.reports.traffic import (
    NEWEST_FIRST,
    SORTS,
    Traffic,
    TrafficFilter,
    TrafficLinks,
    list_traffic,
)
from analytics.watch.verdict import find_closed_of_days
from logs.audit import Reader
from logs.columns import CACHE_STATUSES
from logs.programs import NO_PROGRAM
from rules.ruleset import read_tables
from rules.serializers import ChosenRulesBody, TableInvalidationRequest
from tenantadmin.lib.core.timestamps import now
from tenantadmin.lib.http.budgets import QUERY
from tenantadmin.lib.http.hal import ETAG, IF_NONE_MATCH, link, next_page, not_modified
from tenantadmin.lib.http.schema import NOT_MODIFIED
from tenantadmin.lib.http.serializers import (
    DayField,
    MomentField,
    OneOfField,
    StrictCharField,
    StrictIntegerField,
    StrictSerializer,
)
from tenantadmin.lib.http.viewsets import operation
from tenantadmin.lib.objectstore import default_store

if TYPE_CHECKING:
    from rest_framework.request import Request


TIMELINE_STEPS = list(STEPS)
STATEMENT_ORDERS = list(get_args(StatementOrder))


class ReportParameters(StrictSerializer):
    """The days of a report, both included."""

    from_ = DayField(help_text="The first day.")
    to = DayField(help_text=f"The last day; at most {MAX_DAYS} days.")


class ActivityParameters(StrictSerializer):
    """The days, both included."""

    from_ = DayField(required=False, help_text=f"The first day. Default: {DEFAULT_DAYS} days in all.")
    to = DayField(required=False, help_text="The last day. Default: the last day with entries.")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Refuse a period that ends before it begins, or is too long."""
        if "from" in attrs and "to" not in attrs:
            raise ValidationError({"to": "Give 'to' with 'from'."})
        if "from" in attrs and not 0 <= (attrs["to"] - attrs["from"]).days < MAX_ACTIVITY_DAYS:
            message = f"'from' is at most {MAX_ACTIVITY_DAYS - 1} days before 'to'."
            raise ValidationError({"from": message})
        return attrs


class StatementsParameters(ReportParameters):
    """The days, which of their statements are listed, and their order."""

    statement = StrictCharField(
        required=False,
        max_length=1000,
        trim_whitespace=False,
        help_text="A part of the standardized SQL; case is ignored.",
    )
    rule = StrictCharField(
        required=False,
        max_length=128,
        trim_whitespace=False,
        help_text=f"The rule of the latest request; `{NO_RULE}`: no rule decided.",
    )
    mainRule = StrictCharField(
        required=False, max_length=128, trim_whitespace=False, help_text=f"`mainRule`; `{NO_RULE}`: null."
    )
    status = OneOfField(choices=CACHE_STATUSES, required=False, help_text="Of the latest request.")
    program = StrictCharField(
        required=False,
        max_length=1000,
        trim_whitespace=False,
        help_text="What this program of `listPrograms` sent. The numbers are of all programs.",
    )
    order = OneOfField(
        choices=STATEMENT_ORDERS,
        default="warehouse",
        help_text="Most first; `hit-rate`: the lowest first.",
    )
    limit = StrictIntegerField(min_value=1, max_value=1000, default=200)


class TrafficParameters(StrictSerializer):
    """From when to when, and which requests are meant."""

    from_ = MomentField(
        required=False,
        help_text="The first day, or a date-time, included. Default: six days before `to`.",
    )
    to = MomentField(
        required=False,
        help_text="The last day, included, or a date-time, excluded. The requests are of at most"
        f" {MAX_DAYS} days. Default: today (UTC).",
    )
    status = OneOfField(choices=CACHE_STATUSES, required=False)
    rule = StrictCharField(
        required=False, max_length=128, trim_whitespace=False, help_text=f"`{NO_RULE}`: no rule decided."
    )
    user = StrictCharField(
        required=False, allow_blank=True, max_length=1000, trim_whitespace=False, help_text="`userName`"
    )
    statement = StrictCharField(
        required=False,
        max_length=1000,
        trim_whitespace=False,
        help_text="A part of `standardizedSql`; case is ignored.",
    )
    queryHash = StrictCharField(required=False, max_length=200, trim_whitespace=False)
    program = StrictCharField(
        required=False,
        max_length=1000,
        trim_whitespace=False,
        help_text=f"A program of `listPrograms`; `{NO_PROGRAM}`: the request names none.",
    )
    minMs = StrictIntegerField(
        required=False, min_value=0, max_value=2**63 - 1, help_text="The least `responseTimeMs`."
    )


class TrafficPageParameters(TrafficParameters, PageParameters):
    """Also the order, and which page."""

    sort = OneOfField(
        choices=SORTS,
        default=NEWEST_FIRST,
        help_text="A column; `-`: descending. Ties are by timestamp and `logId`, descending; nulls are last.",
    )
    cursor = StrictCharField(required=False, max_length=4000, help_text="From the `next` link of a page.")


class TimelineParameters(ReportParameters):
    step = OneOfField(choices=TIMELINE_STEPS, default="hour")


class SavingsParameters(StrictSerializer):
    """The days, both included."""

    from_ = DayField(help_text="The first day.")
    to = DayField(help_text=f"The last day; at most {MAX_SAVINGS_DAYS} days.")
    step = OneOfField(
        choices=SAVINGS_STEPS, default="day", help_text="Whether the answer has `days` or `months`."
    )


class ExplainLoggedBody(ChosenRulesBody):
    """An entry of the log, and which rules decide it: by default those in force at its timestamp."""

    logId = StrictCharField(max_length=1000, trim_whitespace=False)
    day = DayField(
        required=False,
        help_text="The day of the entry in `proxy_logs`. "
        f"Default: the newest that has it, of the last {SEARCHED_DAYS} days with a log.",
    )


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

    @route("GET", "/timeline", Level.TENANT, Scope.ANALYTICS_NUMBERS, also=Scope.CONFIG_READ, name="timeline")
    @operation(
        summary="Hits and misses over time, with the changes and markers that fell in it",
        query=TimelineParameters,
        responses={200: Timeline},
    )
    def get_timeline(self, request: Request, tenant: UUID) -> Response:
        """Per hour or day (UTC). What fell into the same time need not be the cause."""
        return Response(timeline(self._log(tenant), window=self._window, step=self.query["step"]))

    @route("GET", "/activity", Level.TENANT, Scope.ANALYTICS_NUMBERS, name="activity")
    @operation(
        summary="The requests of each day, and their change against the days before",
        query=ActivityParameters,
        responses={200: Activity},
    )
    def get_activity(self, request: Request, tenant: UUID) -> Response:
        """By what the cache did. Days without requests are left out; at most 366 days."""
        return Response(read_activity(tenant, first=self.query.get("from"), last=self.query.get("to")))

    @route("GET", "/activity/rules", Level.TENANT, Scope.ANALYTICS_NUMBERS, name="rule-activity")
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

    @route("GET", "/activity/programs", Level.TENANT, Scope.ANALYTICS_NUMBERS, name="programs")
    @operation(
        summary="Which programs ask, what they cost, and what is saved for each",
        budget=QUERY,
        query=ReportParameters,
        responses={200: Callers},
    )
    def list_programs(self, request: Request, tenant: UUID) -> Response:
        """By `userAgent`, without versions. The most warehouse time first."""
        return Response(list_callers(self._log(tenant), window=self._window, by="program"))

    @route(
        "GET",
        "/activity/users",
        Level.TENANT,
        Scope.ANALYTICS_USERS,
        members_only=True,
        notes="members, as for raw logs",
        name="users-activity",
    )
    @operation(
        summary="Which users ask, what they cost, and what is saved for each",
        budget=QUERY,
        query=ReportParameters,
        responses={200: Callers},
    )
    def list_user_activity(self, request: Request, tenant: UUID) -> Response:
        """By `userName`. The most warehouse time first."""
        return Response(list_callers(self._log(tenant), window=self._window, by="user"))

    @route("GET", "/statements", Level.TENANT, Scope.ANALYTICS_READ, name="statements")
    @operation(
        summary="The statements of a few days, with what the cache did for each",
        budget=QUERY,
        query=StatementsParameters,
        responses={200: StatementList},
    )
    def list_statements(self, request: Request, tenant: UUID) -> Response:
        """From the summaries of the days. A mean is the mean of the days, each by its requests."""
        asked, window, program = self.query, self._window, self.query.get("program")
        sent = None if program is None else find_statements(self._log(tenant), window=window, program=program)
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
                    hashes=sent,
                ),
                order=asked["order"],
                limit=asked["limit"],
            )
        )

    @route("GET", "/savings", Level.TENANT, Scope.ANALYTICS_NUMBERS, name="savings")
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
        summary="The requests of the log",
        budget=QUERY,
        query=TrafficPageParameters,
        responses={200: Traffic},
    )
    def list_requests(self, request: Request, tenant: UUID) -> Response:
        """One row per entry of the log. `sql` is the statement that gives the same rows."""
        page = list_traffic(
            self._log(tenant),
            span=self._span,
            matching=self._matching,
            limit=self.query["limit"],
            cursor=self.query.get("cursor"),
            sort=self.query["sort"],
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

    @route("GET", "/requests/histogram", Level.TENANT, Scope.LOGS_QUERY, name="requests-histogram")
    @operation(
        summary="How many requests there were, how they ended, and how long they took, over time",
        budget=QUERY,
        query=TrafficParameters,
        responses={200: RequestHistogram},
    )
    def get_request_histogram(self, request: Request, tenant: UUID) -> Response:
        """At most 100 buckets of equal length, of the requests that the list of requests has."""
        return Response(make_histogram(self._log(tenant), span=self._span, matching=self._matching))

    @property
    def _span(self) -> Span:
        return Span.between(self.query.get("from"), self.query.get("to", now().date()))

    @property
    def _matching(self) -> TrafficFilter:
        asked = self.query
        return TrafficFilter(
            status=asked.get("status"),
            rule=asked.get("rule"),
            user=asked.get("user"),
            statement=asked.get("statement"),
            query_hash=asked.get("queryHash"),
            min_ms=asked.get("minMs"),
            program=asked.get("program"),
        )

    @property
    def _window(self) -> Window:
        return Window(self.query["from"], self.query["to"])

    def _log(self, tenant: UUID) -> LogReader:
        return LogReader(default_store(), tenant, self._reader)

    @property
    def _reader(self) -> Reader:
        return Reader.of_request(self.principal.email)


class ExplainViewSet(AppViewSet):
    """Explanations of logged requests."""

    tag = "Rules"

    @route("POST", "tenants/<uuid:tenant>/explain", Level.TENANT, Scope.LOGS_READ, name="explain")
    @operation(
        summary="Explain which rule decides a logged request, and why it was a miss",
        budget=QUERY,
        body=ExplainLoggedBody,
        responses={200: LoggedExplanationAnswer},
        examples=[
            OpenApiExample(
                "An entry of the log",
                value={"logId": "5f2d9c31", "day": "2026-03-01"},
                request_only=True,
            )
        ],
    )
    def explain_logged_request(self, request: Request, tenant: UUID) -> Response:
        """Applies the rules in force at its timestamp, or the rules of a revision or a draft.

        Each read of the log is recorded before it happens.
        """
        explanation = explain_logged(
            default_store(),
            tenant=tenant,
            day=self.body.get("day"),
            log_id=self.body["logId"],
            seq=self.body.get("seq"),
            draft_id=self.body.get("draftId"),
            reader=Reader.of_request(self.principal.email),
        )
        return Response(explanation)


class SetupViewSet(AppViewSet):
    """The first hour of a tenant."""

    tag = "Tenants"

    @route("GET", "tenants/<uuid:tenant>/setup", Level.TENANT, Scope.CONFIG_READ, name="setup")
    @operation(summary="What a tenant needs before its first hit", responses={200: Setup})
    def get_setup(self, request: Request, tenant: UUID) -> Response:
        """Computed with each request from the configuration, the rules, tokens, members and the log."""
        return Response(read_setup(tenant))
