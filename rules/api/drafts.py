"""Drafts of rulesets. Contract: Cache rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal
from uuid import UUID

import msgspec
from django.urls import reverse
from msgspec import Meta
from rest_framework.response import Response

from accounts.access.scopes import Level, Scope
from accounts.routes import route
from accounts.viewsets import AppViewSet
from rules.api.rules import ruleset_response
from rules.diff import RuleChange, StoredRule
from rules.drafts import (
    DraftDocument,
    DraftHead,
    create_draft,
    delete_draft,
    diff_draft,
    draft_etag,
    find_draft,
    list_drafts,
    publish_draft,
    rebase_draft,
    replace_draft,
)
from rules.ruleset import TenantRules
from rules.serializers import DraftBody, DraftStart, PublishParameters
from rules.write import RulesetRefusal
from tenantadmin.lib.core.structs import Count, JsonStruct
from tenantadmin.lib.http.budgets import LINT
from tenantadmin.lib.http.hal import (
    ETAG,
    IF_MATCH,
    IF_NONE_MATCH,
    LOCATION,
    ItemList,
    Link,
    item,
    link,
    not_modified,
)
from tenantadmin.lib.http.schema import NOT_MODIFIED, STALE, refusal
from tenantadmin.lib.http.viewsets import operation

if TYPE_CHECKING:
    from rest_framework.request import Request

    from rules.models import RuleDraft


class DraftList(ItemList):
    """The drafts of a tenant."""

    drafts: list[DraftHead]


class DraftLinks(JsonStruct):
    self_: Link
    parent: Link


class DraftDifference(JsonStruct):
    """What publishing a draft would change; ``from`` is the current revision."""

    from_: Count
    base_seq: Count
    draft_id: UUID
    kind: Literal["rules"]
    links: DraftLinks = msgspec.field(name="_links")
    added: tuple[StoredRule, ...]
    removed: tuple[StoredRule, ...]
    changed: tuple[RuleChange, ...]
    reordered: Annotated[bool, Meta(description="The rules that both have are in another order.")]
    conflicts: Annotated[
        tuple[str, ...],
        Meta(description="Ids of rules that both the draft and another writer have changed since the base."),
    ]


class DraftViewSet(AppViewSet):
    """The drafts of a tenant's rules."""

    tag = "Rules"
    prefix = "config/tenants/<uuid:tenant>/rules/drafts"

    @route("GET", "", Level.TENANT, Scope.CONFIG_READ, name="rules-drafts")
    @operation(
        summary="List the drafts of a tenant's rules, the last modified first", responses={200: DraftList}
    )
    def list_drafts(self, request: Request, tenant: UUID) -> Response:
        """The lint is from the last write of each draft."""
        drafts = list_drafts(tenant)
        items = (item(str(draft.pk), _href(tenant, draft.pk)) for draft in drafts)
        heads = [DraftHead.of(draft) for draft in drafts]
        return Response(DraftList(links=self.links("rules", items), drafts=heads))

    @route("POST", "", Level.TENANT, Scope.CONFIG_WRITE)
    @operation(
        summary="Make a draft",
        budget=LINT,
        description="By default a copy of the current rules. It may have lint errors.",
        body=DraftStart,
        headers=[ETAG, LOCATION],
        responses={201: DraftDocument},
    )
    def create_draft(self, request: Request, tenant: UUID) -> Response:
        draft = create_draft(tenant_id=tenant, document=self.body, actor=self.principal.email)
        return draft_response(draft, status=201, Location=_href(tenant, draft.pk))

    @route("GET", "/<uuid:draft>", Level.TENANT, Scope.CONFIG_READ, name="rules-draft")
    @operation(
        summary="Read a draft",
        description="The lint is from the last write; publishing lints again.",
        headers=[IF_NONE_MATCH, ETAG],
        responses={200: DraftDocument, 304: NOT_MODIFIED},
    )
    def get_draft(self, request: Request, tenant: UUID, draft: UUID) -> Response:
        stored = find_draft(tenant, draft)
        return not_modified(request, draft_etag(stored)) or draft_response(stored)

    @route("PUT", "/<uuid:draft>", Level.TENANT, Scope.CONFIG_WRITE)
    @operation(
        summary="Replace a draft",
        budget=LINT,
        description="It may have lint errors. An absent `name` or `baseSeq` stays as it is.",
        body=DraftBody,
        headers=[IF_MATCH, ETAG],
        responses={200: DraftDocument, 409: STALE},
    )
    def replace_draft(self, request: Request, tenant: UUID, draft: UUID) -> Response:
        replaced = replace_draft(
            tenant_id=tenant,
            draft_id=draft,
            document=self.body,
            actor=self.principal.email,
            expected_etag=request.headers.get("If-Match"),
        )
        return draft_response(replaced)

    @route("DELETE", "/<uuid:draft>", Level.TENANT, Scope.CONFIG_WRITE)
    @operation(summary="Delete a draft", headers=[IF_MATCH], responses={204: None, 409: STALE})
    def delete_draft(self, request: Request, tenant: UUID, draft: UUID) -> Response:
        """The current rules stay as they are."""
        delete_draft(
            tenant_id=tenant,
            draft_id=draft,
            actor=self.principal.email,
            expected_etag=request.headers.get("If-Match"),
        )
        return Response(status=204)

    @route("GET", "/<uuid:draft>/diff", Level.TENANT, Scope.CONFIG_READ, name="rules-draft-diff")
    @operation(
        summary="Compare a draft with the current rules", budget=LINT, responses={200: DraftDifference}
    )
    def diff_draft(self, request: Request, tenant: UUID, draft: UUID) -> Response:
        """What publishing it would change. `conflicts` are rules that others have changed since its base."""
        diff = diff_draft(tenant, draft)
        return Response(
            DraftDifference(
                from_=diff.current_seq,
                base_seq=diff.base_seq,
                draft_id=draft,
                kind="rules",
                links=DraftLinks(self_=link(request.path), parent=link(_href(tenant, draft))),
                added=diff.changes.added,
                removed=diff.changes.removed,
                changed=diff.changes.changed,
                reordered=diff.changes.reordered,
                conflicts=diff.conflicts,
            )
        )

    @route("POST", "/<uuid:draft>/rebase", Level.TENANT, Scope.CONFIG_WRITE, name="rules-draft-rebase")
    @operation(
        summary="Apply the changes of a draft to the current rules",
        budget=LINT,
        headers=[IF_MATCH, ETAG],
        responses={200: DraftDocument, 400: RulesetRefusal, 409: STALE},
    )
    def rebase_draft(self, request: Request, tenant: UUID, draft: UUID) -> Response:
        """For a draft of earlier rules. A rule that others have changed too is as in the draft.

        The current rules stay as they are; `baseSeq` becomes their revision.
        """
        rebased = rebase_draft(
            tenant_id=tenant,
            draft_id=draft,
            actor=self.principal.email,
            expected_etag=request.headers.get("If-Match"),
        )
        return draft_response(rebased)

    @route("POST", "/<uuid:draft>/publish", Level.TENANT, Scope.CONFIG_WRITE, name="rules-draft-publish")
    @operation(
        summary="Publish a draft as the tenant's rules",
        budget=LINT,
        description="A normal write with today's checks. Deletes the draft; the new revision names it.",
        query=PublishParameters,
        headers=[IF_MATCH, ETAG],
        responses={
            200: TenantRules,
            400: RulesetRefusal,
            409: refusal(409, "The rules were written after the draft was made, or the draft changed."),
        },
    )
    def publish_draft(self, request: Request, tenant: UUID, draft: UUID) -> Response:
        written = publish_draft(
            tenant_id=tenant,
            draft_id=draft,
            actor=self.principal.email,
            confirm_deletes=self.query.get("confirmDeletes", frozenset()),
            comment=self.query.get("comment", ""),
            expected_etag=request.headers.get("If-Match"),
        )
        return ruleset_response(written)


def _href(tenant: UUID, draft: UUID) -> str:
    return reverse("rules-draft", kwargs={"tenant": tenant, "draft": draft})


def draft_response(draft: RuleDraft, *, status: int = 200, **headers: Any) -> Response:
    return Response(DraftDocument.of(draft), status=status, headers={"ETag": draft_etag(draft), **headers})
