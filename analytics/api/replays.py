"""Replays of rulesets."""

# ruff: noqa: N815  (fields have the names of the JSON members)

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from django.urls import reverse
from drf_spectacular.utils import OpenApiExample, extend_schema_field
from rest_framework import serializers
from rest_framework.response import Response

from accounts.access.scopes import Level, Scope
from accounts.routes import route
from accounts.viewsets import AppViewSet
from analytics.advice.recommend import purpose_of_replay
from analytics.models import ReplayRun
from analytics.replay.names import name_replays
from analytics.replay.runs import (
    Replay,
    ReplaySummary,
    cancel_replay,
    describe_replay,
    find_outdated,
    list_replays,
    queue_replay,
    read_replay,
    replay_etag,
    summarize_replays,
)
from rules.serializers import RuleBody
from tenantadmin.lib.core.structs import Success
from tenantadmin.lib.http.budgets import LINT
from tenantadmin.lib.http.hal import ETAG, IF_NONE_MATCH, LOCATION, ItemList, hrefs, item, not_modified
from tenantadmin.lib.http.schema import NOT_MODIFIED, refusal
from tenantadmin.lib.http.serializers import (
    DayField,
    JsonBooleanField,
    JsonIntegerField,
    StrictSerializer,
    StrictUuidField,
)
from tenantadmin.lib.http.viewsets import operation

if TYPE_CHECKING:
    from rest_framework.request import Request


class ReplayGateway(StrictSerializer):
    """What the Gateway does by itself. What is absent is learned from the log."""

    nocache = JsonBooleanField(
        required=False, help_text="It declines requests with `cacheOverride` = `nocache`."
    )
    nonDeterministic = JsonBooleanField(
        required=False,
        help_text="It declines non-deterministic statements, unless `cacheOverride` is `cache`.",
    )
    keysPerUser = JsonBooleanField(
        required=False, help_text="It keeps the results of users apart, also under rules that do not vary."
    )


@extend_schema_field(RuleBody(many=True))
class RulesField(serializers.JSONField):
    """The rules of a ruleset. Lint checks them."""


class ReplayBody(StrictSerializer):
    """Which ruleset to replay over which days. Give one of ``rules``, ``seq`` and ``draftId``."""

    from_ = DayField(help_text="The first day, included.")
    to = DayField(help_text="The last day, included.")
    rules = RulesField(required=False)
    seq = JsonIntegerField(required=False, min_value=0, max_value=2**31 - 1, help_text="A revision.")
    draftId = StrictUuidField(required=False, help_text="A draft of the rules, which has no lint errors.")
    warmupDays = JsonIntegerField(
        required=False, default=1, min_value=0, max_value=7, help_text="Days before that fill the cache."
    )
    gateway = ReplayGateway(required=False, default=dict)
    exact = JsonBooleanField(
        required=False, default=False, help_text="Replay all entries of a large log, and not a sample."
    )


class ReplayList(ItemList):
    """The replays of a tenant."""

    replays: list[ReplaySummary]


class ReplayViewSet(AppViewSet):
    """The replays of a tenant."""

    tag = "Replays"
    prefix = "tenants/<uuid:tenant>/replays"

    @route("GET", "", Level.TENANT, Scope.CONFIG_READ, name="replays")
    @operation(summary="List a tenant's replays, newest first", responses={200: ReplayList})
    def list_replays(self, request: Request, tenant: UUID) -> Response:
        """The 50 newest of the last 30 days, without their results."""
        runs = list(list_replays(tenant_id=tenant))
        href = hrefs("replay", tenant=tenant, replayId=tenant)
        return Response(
            ReplayList(
                links=self.links("tenant", (item(str(run.pk), href(run.pk)) for run in runs)),
                replays=summarize_replays(runs),
            )
        )

    @route("POST", "", Level.TENANT, Scope.CONFIG_WRITE, needs_no_reason=True)
    @operation(
        summary="Replay a ruleset over the log",
        budget=LINT,
        queue="REPLAY_QUEUE",
        body=ReplayBody,
        headers=[LOCATION],
        responses={
            200: Replay,
            202: Replay,
            429: refusal(429, "Too many replays of the tenant wait, or were started."),
        },
        examples=[
            OpenApiExample(
                "A ruleset of two months ago, over a week",
                value={"seq": 3, "from": "2026-03-01", "to": "2026-03-07"},
                request_only=True,
            )
        ],
    )
    def request_replay(self, request: Request, tenant: UUID) -> Response:
        """Computes what a ruleset would have done with the requests of these days, both included.

        202 while the replay waits or runs: ask `Location` until its `state` is `done`, `failed` or
        `cancelled`. 200 if a replay of the same input is done.
        """
        run = queue_replay(
            tenant_id=tenant,
            rules=self.body.get("rules"),
            seq=self.body.get("seq"),
            draft_id=self.body.get("draftId"),
            first_day=self.body["from"],
            last_day=self.body["to"],
            warmup_days=self.body["warmupDays"],
            gateway=self.body["gateway"],
            is_exact=self.body["exact"],
            actor=self.principal.email,
        )
        return Response(
            describe_replay(run, find_outdated(run)),
            status=200 if run.state == ReplayRun.State.DONE else 202,
            headers={"Location": reverse("replay", kwargs={"tenant": tenant, "replayId": run.pk})},
        )

    @route("GET", "/<uuid:replayId>", Level.TENANT, Scope.CONFIG_READ, name="replay")
    @operation(
        summary="Read a replay",
        headers=[IF_NONE_MATCH, ETAG],
        responses={200: Replay, 304: NOT_MODIFIED},
    )
    def get_replay(self, request: Request, tenant: UUID, replayId: UUID) -> Response:  # noqa: N803
        """The state of a replay, and its result when it is done."""
        run = read_replay(tenant_id=tenant, replay_id=replayId)
        outdated, name = find_outdated(run), name_replays([run])[run.pk]
        etag = replay_etag(run, outdated, name)
        return not_modified(request, etag) or Response(
            describe_replay(run, outdated, purpose=purpose_of_replay(run.pk), name=name),
            headers={"ETag": etag},
        )

    @route("DELETE", "/<uuid:replayId>", Level.TENANT, Scope.CONFIG_WRITE, needs_no_reason=True)
    @operation(summary="Cancel a replay, or remove one that has ended", responses={200: Success})
    def cancel_replay(self, request: Request, tenant: UUID, replayId: UUID) -> Response:  # noqa: N803
        """A running replay ends within seconds."""
        is_cancelled = cancel_replay(tenant_id=tenant, replay_id=replayId, actor=self.principal.email)
        message = "The replay is cancelled." if is_cancelled else "The replay is removed."
        return Response(Success(success=True, message=message))
