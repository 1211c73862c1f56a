"""The change history of configuration and of everything together. Contract: Change history."""
# ruff: noqa: N815  (the members' names are those of the JSON)

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import urlencode

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from accounts.api.config import config_response
from accounts.api.parameters import ETAG, IF_MATCH, SEQ
from accounts.api.schema import STALE, HalItem, Link
from accounts.diff import diff_documents
from accounts.emails import normalize_email
from accounts.models.history import RevisionAction, RevisionKind
from accounts.permissions import AppView
from accounts.revisions import (
    DEFAULT_LIMIT,
    MAX_LIMIT,
    Document,
    HistoryFilter,
    HistoryPage,
    change_as_json,
    read_changes,
    read_pair,
    read_revision,
    read_timeline,
)
from accounts.tenants.restore import restore_config
from accounts.tenants.schema import TenantConfigDocument
from tenantadmin.core.errors import BadRequest, Detail
from tenantadmin.http.etags import require_match
from tenantadmin.http.fields import OneOfField, StrictIntegerField
from tenantadmin.http.hal import link, links
from tenantadmin.http.serializers import StrictCharField, StrictSerializer, TimestampField, read_query

if TYPE_CHECKING:
    from uuid import UUID

    from rest_framework.request import Request


class PageParameters(StrictSerializer):
    limit = StrictIntegerField(default=DEFAULT_LIMIT, min_value=1, max_value=MAX_LIMIT)
    cursor = StrictCharField(required=False, max_length=200, help_text="From the `next` link of a page.")


class ChangeParameters(PageParameters):
    """``from`` is a word of Python's; it joins the fields below."""

    to = TimestampField(required=False, help_text="Inclusive.")
    userId = StrictCharField(required=False, max_length=320, help_text="Who made the change.")
    kind = OneOfField(choices=RevisionKind.values, required=False)

    def get_fields(self) -> dict[str, Any]:
        return {"from": TimestampField(required=False, help_text="Inclusive."), **super().get_fields()}


class DiffParameters(StrictSerializer):
    """``from`` is a word of Python's; it joins the field below."""

    to = StrictIntegerField(min_value=0)

    def get_fields(self) -> dict[str, Any]:
        return {"from": StrictIntegerField(min_value=0), **super().get_fields()}


class Change(serializers.Serializer[Any]):
    """One recorded change."""

    seq = serializers.IntegerField(min_value=0)
    kind = OneOfField(choices=RevisionKind.values)
    tenantId = serializers.UUIDField(required=False)
    accountId = serializers.UUIDField()
    userId = serializers.CharField()
    changedAt = serializers.DateTimeField()
    action = OneOfField(choices=RevisionAction.values)
    restoredFrom = serializers.IntegerField(min_value=0, required=False)
    summary = serializers.DictField(help_text="Counts and names of what changed.")


class ChangePageLinks(serializers.Serializer[Any]):
    self = Link()
    parent = Link()
    next = Link(required=False)
    items = HalItem(many=True)


class ChangeHistoryPage(serializers.Serializer[Any]):
    """Changes, newest first."""

    _links = ChangePageLinks()
    changes = Change(many=True)


class ChangeRevision(Change):
    """A change and the whole document after it; null after a deletion."""

    document = serializers.DictField(allow_null=True)


class FieldDifference(serializers.Serializer[Any]):
    """``from`` and ``to`` are any JSON; null stands for absent too."""

    path = serializers.CharField(help_text="JSON Pointer.")
    to = serializers.JSONField(allow_null=True)

    def get_fields(self) -> dict[str, Any]:
        return {**super().get_fields(), "from": serializers.JSONField(allow_null=True)}


class DiffLinks(serializers.Serializer[Any]):
    self = Link()
    parent = Link()
    to = Link()

    def get_fields(self) -> dict[str, Any]:
        return {**super().get_fields(), "from": Link()}


class DiffHead(serializers.Serializer[Any]):
    to = serializers.IntegerField(min_value=0)
    kind = OneOfField(choices=RevisionKind.values)
    _links = DiffLinks()

    def get_fields(self) -> dict[str, Any]:
        return {"from": serializers.IntegerField(min_value=0), **super().get_fields()}


class DocumentDiff(DiffHead):
    """The fields that differ between two revisions."""

    fields = FieldDifference(many=True)  # type: ignore[assignment]  # a member, not the property


def page_response(request: Request, page: HistoryPage, *, address: str, parent: str) -> Response:
    """Answer a page of history; ``next`` repeats the question with the cursor in it."""
    more = {}
    if page.cursor is not None:
        asked = {**request.query_params.dict(), "cursor": page.cursor}
        more["next"] = link(f"{address}?{urlencode(asked)}")
    return Response(
        {
            "_links": links(self_href=request.get_full_path(), parent=parent, items=page.items(), **more),
            "changes": page.as_json(),
        }
    )


def timeline_response(request: Request, document: Document) -> Response:
    """Answer a page of one document's history."""
    asked = read_query(PageParameters, request)
    page = read_timeline(document, limit=asked["limit"], cursor=asked.get("cursor"))
    return page_response(request, page, address=document.history_path, parent=document.path)


def revision_response(request: Request, document: Document, seq: int) -> Response:
    """Answer one revision with its document."""
    read_query(None, request)
    revision = read_revision(document, seq)
    return Response({**change_as_json(revision), "document": revision.document})


def diff_head(document: Document, *, earlier: int, later: int) -> dict[str, Any]:
    """Return what every diff says before the differences."""
    history = document.history_path
    return {
        "from": earlier,
        "to": later,
        "kind": document.kind.value,
        "_links": {
            "self": link(f"{history}/diff?from={earlier}&to={later}"),
            "parent": link(history),
            "from": link(f"{history}/{earlier}"),
            "to": link(f"{history}/{later}"),
        },
    }


def fields_diff_response(request: Request, document: Document) -> Response:
    """Answer the differing fields of two revisions of a configuration or an account."""
    asked = read_query(DiffParameters, request)
    earlier, later = asked["from"], asked["to"]
    before, after = read_pair(document, earlier=earlier, later=later)
    changes = diff_documents(before=before, after=after)
    return Response(
        {
            **diff_head(document, earlier=earlier, later=later),
            "fields": [change.as_json() for change in changes],
        }
    )


def require_empty_body(request: Request) -> None:
    """Refuse a body where the operation takes none.

    Raises:
        BadRequest: there is one.
    """
    if request.data:
        raise BadRequest("This operation takes no body.")


class ChangesView(AppView):
    """Every change that the caller may read."""

    operations: ClassVar = {"GET": "listChanges"}

    @extend_schema(
        tags=["History"],
        summary="List changes of rules, configurations and accounts, newest first",
        parameters=[ChangeParameters],
        responses={200: ChangeHistoryPage},
    )
    def get(self, request: Request) -> Response:
        asked = read_query(ChangeParameters, request)
        wanted = read_filter(asked)
        page = read_changes(self.principal, wanted, limit=asked["limit"], cursor=asked.get("cursor"))
        return page_response(request, page, address="/config/history", parent="/")


def read_filter(asked: dict[str, Any]) -> HistoryFilter:
    """Return the filter of validated parameters.

    Raises:
        BadRequest: the period ends before it begins.
    """
    since, until = asked.get("from"), asked.get("to")
    if since is not None and until is not None and since > until:
        message = "'from' is later than 'to'."
        raise BadRequest(message, details=[Detail("/from", "out-of-range", message)])
    user = asked.get("userId")
    return HistoryFilter(since, until, None if user is None else normalize_email(user), asked.get("kind"))


def _config(tenant: UUID) -> Document:
    return Document(RevisionKind.CONFIG, tenant)


class ConfigHistoryView(AppView):
    operations: ClassVar = {"GET": "listConfigHistory"}

    @extend_schema(
        tags=["History"],
        summary="List the changes of a tenant's configuration",
        parameters=[PageParameters],
        responses={200: ChangeHistoryPage},
    )
    def get(self, request: Request, tenant: UUID) -> Response:
        return timeline_response(request, _config(tenant))


class ConfigDiffView(AppView):
    operations: ClassVar = {"GET": "diffConfig"}

    @extend_schema(
        tags=["History"],
        summary="Compare two revisions of a tenant's configuration",
        parameters=[DiffParameters],
        responses={200: DocumentDiff},
    )
    def get(self, request: Request, tenant: UUID) -> Response:
        return fields_diff_response(request, _config(tenant))


class ConfigRevisionView(AppView):
    operations: ClassVar = {"GET": "getConfigRevision"}

    @extend_schema(
        tags=["History"],
        summary="Read one revision of a tenant's configuration",
        parameters=[SEQ],
        responses={200: ChangeRevision},
    )
    def get(self, request: Request, tenant: UUID, seq: int) -> Response:
        return revision_response(request, _config(tenant), seq)


class ConfigRestoreView(AppView):
    operations: ClassVar = {"POST": "restoreConfig"}

    @extend_schema(
        tags=["History"],
        summary="Restore a revision of a tenant's configuration",
        description="A normal write under today's FQDN, plan and name state; it points back at its source.",
        parameters=[SEQ, IF_MATCH, ETAG],
        request=None,
        responses={200: TenantConfigDocument, 409: STALE},
    )
    def post(self, request: Request, tenant: UUID, seq: int) -> Response:
        read_query(None, request)
        require_empty_body(request)
        restored = restore_config(
            tenant_id=tenant,
            seq=seq,
            actor=self.principal.email,
            require=partial(require_match, request),
        )
        return config_response(restored)


def _account(account: UUID) -> Document:
    return Document(RevisionKind.ACCOUNT, account)


class AccountHistoryView(AppView):
    operations: ClassVar = {"GET": "listAccountHistory"}

    @extend_schema(
        tags=["History"],
        summary="List the changes of an account since its creation",
        parameters=[PageParameters],
        responses={200: ChangeHistoryPage},
    )
    def get(self, request: Request, account: UUID) -> Response:
        return timeline_response(request, _account(account))


class AccountDiffView(AppView):
    operations: ClassVar = {"GET": "diffAccount"}

    @extend_schema(
        tags=["History"],
        summary="Compare two revisions of an account",
        parameters=[DiffParameters],
        responses={200: DocumentDiff},
    )
    def get(self, request: Request, account: UUID) -> Response:
        return fields_diff_response(request, _account(account))


class AccountRevisionView(AppView):
    operations: ClassVar = {"GET": "getAccountRevision"}

    @extend_schema(
        tags=["History"],
        summary="Read one revision of an account",
        parameters=[SEQ],
        responses={200: ChangeRevision},
    )
    def get(self, request: Request, account: UUID, seq: int) -> Response:
        return revision_response(request, _account(account), seq)
