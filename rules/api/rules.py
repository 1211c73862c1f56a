"""``…/rules`` and the dry run. Contract: Tenants and configuration."""
# ruff: noqa: N815  (the parameters' names are those of the address)

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from django.http import HttpResponse, HttpResponseNotModified
from drf_spectacular.utils import OpenApiExample, PolymorphicProxySerializer, extend_schema
from rest_framework.response import Response

from accounts.api.parameters import ETAG, IF_MATCH, IF_NONE_MATCH
from accounts.api.schema import NOT_MODIFIED, STALE
from accounts.permissions import AppView, PolledView
from rules.api.schema import RuleLintResult, RulesetRefusal, TenantRules, TenantRulesBody
from rules.ruleset import RulesetState, render_ruleset, ruleset_etag
from rules.write import lint_document, write_ruleset
from tenantadmin.http.etags import holds, require_match
from tenantadmin.http.serializers import StrictCharField, StrictSerializer, read_query

if TYPE_CHECKING:
    from uuid import UUID

    from django.http import HttpRequest
    from rest_framework.request import Request

    from accounts.access.principal import Principal

_RULESET = OpenApiExample(
    "A cache rule and the rule that invalidates it",
    value={
        "rules": [
            {
                "id": "orders",
                "conditions": {"tables": {"containsAny": ["sales.orders"]}, "isReadOnly": True},
                "ttlSeconds": 3600,
            },
            {
                "id": "orders-written",
                "conditions": {"tables": {"containsAny": ["sales.orders"]}, "isDataChange": True},
                "invalidateRules": ["orders"],
            },
        ]
    },
    request_only=True,
)


class IdListField(StrictCharField):
    """Rule ids, comma separated."""

    def to_internal_value(self, data: Any) -> Any:
        return frozenset(part for part in super().to_internal_value(data).split(",") if part)


class ConfirmParameters(StrictSerializer):
    confirmDeletes = IdListField(
        required=False,
        allow_blank=True,
        help_text="Ids of removed rules, comma separated, whose active markers may be lost.",
    )


def ruleset_response(ruleset: RulesetState) -> Response:
    """Answer a ruleset under its entity tag."""
    return Response(ruleset.as_json(), headers={"ETag": ruleset.etag})


class RulesView(PolledView):
    """A tenant's ruleset."""

    operations: ClassVar = {"GET": "getTenantRules", "PUT": "replaceTenantRules"}

    @extend_schema(
        tags=["Rules"],
        summary="Read a tenant's rules",
        parameters=[IF_NONE_MATCH, ETAG],
        responses={200: TenantRules, 304: NOT_MODIFIED},
    )
    def get(self, request: Request, tenant: UUID) -> HttpResponse:
        read_query(None, request)
        return self.answer_poll(request, principal=self.principal, tenant=tenant)

    def answer_poll(
        self,
        request: HttpRequest | Request,
        *,
        principal: Principal,  # noqa: ARG002
        **arguments: Any,
    ) -> HttpResponse:
        tenant: UUID = arguments["tenant"]
        if "HTTP_IF_NONE_MATCH" in request.META:
            etag = ruleset_etag(tenant)
            if holds(request, etag):
                return HttpResponseNotModified(headers={"ETag": etag})
        body, etag = render_ruleset(tenant)
        return HttpResponse(body, content_type="application/json", headers={"ETag": etag})

    @extend_schema(
        tags=["Rules"],
        summary="Replace a tenant's rules",
        parameters=[ConfirmParameters, IF_MATCH, ETAG],
        request=TenantRulesBody,
        responses={200: TenantRules, 400: RulesetRefusal, 409: STALE},
        examples=[_RULESET],
    )
    def put(self, request: Request, tenant: UUID) -> Response:
        confirmed = read_query(ConfirmParameters, request).get("confirmDeletes", frozenset())
        written = write_ruleset(
            tenant_id=tenant,
            document=request.data,
            actor=self.principal.email,
            confirm_deletes=confirmed,
            require=partial(require_match, request),
        )
        return ruleset_response(written)


class ValidateRulesView(AppView):
    """The dry run: lint without any tenant."""

    operations: ClassVar = {"POST": "validateRules"}

    @extend_schema(
        tags=["Rules"],
        summary="Check a ruleset without writing it",
        request=TenantRulesBody,
        responses={
            200: RuleLintResult,
            400: PolymorphicProxySerializer(
                component_name="RuleLintRefusal",
                serializers=[RuleLintResult, RulesetRefusal],
                resource_type_field_name=None,
            ),
        },
        examples=[_RULESET],
    )
    def post(self, request: Request) -> Response:
        read_query(None, request)
        result = lint_document(request.data)
        return Response(result.as_json(), status=200 if result.valid else 400)
