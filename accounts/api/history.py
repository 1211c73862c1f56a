"""The history of documents, and events. Contract: Change history, Events."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Final
from uuid import UUID

import msgspec
from django.db.models import Q
from django.urls import reverse
from rest_framework.response import Response

from accounts.access.resources import is_signed_in_owner
from accounts.access.scopes import Level, Scope
from accounts.admin.words import describe_changes, describe_event
from accounts.api.tenants import config_response
from accounts.diff import ChangeInWords, FieldChange, describe_fields, diff_documents
from accounts.models.history import RevisionKind
from accounts.revisions import (
    Change,
    ChangeRevision,
    DocumentHistory,
    EventDocument,
    Page,
    describe_in_force,
    history_of,
    read_changes,
    read_events,
    read_pair,
    read_revision,
    read_timeline,
)
from accounts.routes import route
from accounts.serializers.history import (
    ChangeParameters,
    CommentParameters,
    DiffParameters,
    EventParameters,
    PageParameters,
)
from accounts.serializers.tenants import parse_config
from accounts.tenants.config import TenantConfigDocument
from accounts.tenants.lifecycle import restore_config
from accounts.viewsets import AppViewSet
from tenantadmin.lib.core.emails import normalize_email
from tenantadmin.lib.core.errors import BadRequest, Detail
from tenantadmin.lib.core.spreadsheets import CSV, CSV_FOR_PEOPLE
from tenantadmin.lib.core.structs import Count, JsonStruct
from tenantadmin.lib.http.bodies import preferred_media_type
from tenantadmin.lib.http.hal import ETAG, IF_MATCH, SEQ, Link, PageLinks, item, link, next_page, page_links
from tenantadmin.lib.http.schema import STALE
from tenantadmin.lib.http.streaming import stream_csv
from tenantadmin.lib.http.viewsets import operation

if TYPE_CHECKING:
    from django.http import HttpResponseBase
    from rest_framework.request import Request

    from accounts.models import Event, Revision
    from accounts.routes import Route


class ChangeHistoryPage(JsonStruct):
    """Changes, newest first."""

    links: PageLinks = msgspec.field(name="_links")
    changes: list[Change]


class DiffLinks(JsonStruct):
    self_: Link
    parent: Link
    to: Link
    from_: Link


class DiffHead(JsonStruct):
    from_: Count
    to: Count
    kind: RevisionKind
    links: DiffLinks = msgspec.field(name="_links")


class DocumentDiff(DiffHead):
    """The fields that differ between two revisions."""

    fields: list[FieldChange]
    in_words: tuple[ChangeInWords, ...] | None = None


class HistoryViewSet(AppViewSet):
    """Base class of the viewsets that return changes."""

    tag = "History"

    def page(self, page: Page[Revision], *, parent: str) -> Response:
        """Return the response of a page. Its ``next`` link is the same request with the cursor."""
        items = [item(str(row.seq), _href(history_of(row), "revision", seq=row.seq)) for row in page.rows]
        found = page_links(self.request, parent=parent, items=items, cursor=page.cursor)
        changes = [Change.of(change) for change in page.rows]
        return Response(ChangeHistoryPage(links=found, changes=changes))


class ChangesViewSet(HistoryViewSet):
    """The changes of all documents."""

    @route("GET", "config/history", Level.SERVICE, Scope.CONFIG_READ, name="changes")
    @operation(
        summary="List changes of rules, configurations and accounts, newest first",
        description="Every change that the caller may read.",
        query=ChangeParameters,
        responses={200: ChangeHistoryPage},
    )
    def list_changes(self, request: Request) -> Response:
        page = read_changes(
            self.principal,
            _make_filter(
                self.query,
                "changed_at",
                user=_email(self.query.get("userId")),
                kind=self.query.get("kind"),
            ),
            limit=self.query["limit"],
            cursor=self.query.get("cursor"),
        )
        return self.page(page, parent=reverse("contract"))


class DocumentHistoryViewSet(HistoryViewSet):
    """The history of one document: a tenant's rules or configuration, or an account.

    The routes of a kind of document are named after it: ``rules`` is the document, ``rules-history``,
    ``rules-diff`` and ``rules-revision`` lie below it.
    """

    kind: ClassVar[RevisionKind]
    #: Whose history it is, for the contract.
    owner: ClassVar[str]

    @classmethod
    def operation_id(cls, action: str) -> str:
        """Return the ``operationId``: ``list_history`` of rules is ``listRulesHistory``."""
        verb, _, noun = action.partition("_")
        return verb + cls.kind.value.capitalize() + noun.capitalize()

    @classmethod
    def summary(cls, action: str) -> str:
        return super().summary(action).format(owner=cls.owner)

    @classmethod
    def route_of(cls, action: str) -> Route:
        declared = super().route_of(action)
        return replace(declared, name=declared.name.format(kind=cls.kind.value))

    @property
    def history(self) -> DocumentHistory:
        """The history of the document in the path."""
        return DocumentHistory(self.kind, self.kwargs[_parameter(self.kind)])

    @route("GET", "/history", Level.TENANT, Scope.CONFIG_READ, name="{kind}-history")
    @operation(
        summary="List the changes of {owner}", query=PageParameters, responses={200: ChangeHistoryPage}
    )
    def list_history(self, request: Request, **_: UUID) -> Response:
        page = read_timeline(self.history, limit=self.query["limit"], cursor=self.query.get("cursor"))
        return self.page(page, parent=_href(self.history))

    @route("GET", "/history/<seq:seq>", Level.TENANT, Scope.CONFIG_READ, name="{kind}-revision")
    @operation(summary="Read one revision of {owner}", path=[SEQ], responses={200: ChangeRevision})
    def get_revision(self, request: Request, *, seq: int, **_: UUID) -> Response:
        revision = read_revision(self.history, seq)
        return Response(ChangeRevision.of(revision, in_force=describe_in_force(revision)))

    @route("GET", "/history/diff", Level.TENANT, Scope.CONFIG_READ, name="{kind}-diff")
    @operation(
        summary="Compare two revisions of {owner}", query=DiffParameters, responses={200: DocumentDiff}
    )
    def diff(self, request: Request, **_: UUID) -> Response:
        history, earlier, later = self.history, self.query["from"], self.query["to"]
        before, after = read_pair(history, earlier=earlier, later=later)
        address = _href(history, "diff")
        links = DiffLinks(
            self_=link(f"{address}?from={earlier}&to={later}"),
            parent=link(_href(history, "history")),
            to=link(_href(history, "revision", seq=later)),
            from_=link(_href(history, "revision", seq=earlier)),
        )
        head = DiffHead(from_=earlier, to=later, kind=self.kind, links=links)
        return Response(self.compare(head, before, after))

    def compare(self, head: DiffHead, before: Mapping[str, Any], after: Mapping[str, Any]) -> DiffHead:
        """Return ``head`` with what differs between two documents of this kind."""
        fields = list(diff_documents(before=before, after=after))
        return DocumentDiff.of(head, fields=fields, in_words=describe_fields(fields))


class ConfigHistoryViewSet(DocumentHistoryViewSet):
    """The history of a tenant's configuration."""

    prefix = "config/tenants/<uuid:tenant>/config"

    kind = RevisionKind.CONFIG
    owner = "a tenant's configuration"

    @route(
        "POST",
        "/history/<seq:seq>/restore",
        Level.TENANT,
        Scope.CONFIG_WRITE,
        notes="`access`: as replaceTenantConfig",
        name="config-restore",
    )
    @operation(
        summary="Restore a revision of a tenant's configuration",
        description="A normal write with today's checks of FQDNs, plan and name. Records the source.",
        path=[SEQ],
        query=CommentParameters,
        headers=[IF_MATCH, ETAG],
        responses={200: TenantConfigDocument, 409: STALE},
    )
    def restore(self, request: Request, *, tenant: UUID, seq: int) -> Response:
        restored = restore_config(
            tenant_id=tenant,
            seq=seq,
            parse=parse_config,
            actor=self.principal.email,
            by_owner=is_signed_in_owner(self.principal, tenant),
            expected_etag=request.headers.get("If-Match"),
            comment=self.query.get("comment", ""),
        )
        return config_response(restored)


class AccountHistoryViewSet(DocumentHistoryViewSet):
    """The history of an account."""

    prefix = "config/accounts/<uuid:account>"

    kind = RevisionKind.ACCOUNT
    owner = "an account"

    @classmethod
    def route_of(cls, action: str) -> Route:
        return replace(super().route_of(action), level=Level.ACCOUNT)


def _href(history: DocumentHistory, what: str = "", **more: int) -> str:
    """Return the address of a document, or of a part of its history."""
    name = f"{history.kind.value}-{what}" if what else history.kind.value
    return reverse(name, kwargs={_parameter(history.kind): history.id, **more})


def _parameter(kind: RevisionKind) -> str:
    """Return the path parameter that holds the id of a kind of document."""
    return "account" if kind is RevisionKind.ACCOUNT else "tenant"


def _make_filter(query: Mapping[str, Any], time: str, **given: Any) -> Q:
    """Return the filter of validated parameters. ``time`` names the field that ``from`` and ``to`` limit.

    Raises:
        BadRequest: the period ends before it begins.
    """
    since, until = read_period(query)
    lookups = {f"{time}__gte": since, f"{time}__lte": until, **given}
    return Q(**{name: value for name, value in lookups.items() if value is not None})


def _email(text: str | None) -> str | None:
    return None if text is None else normalize_email(text)


def read_period(asked: Mapping[str, Any]) -> tuple[dt.datetime | None, dt.datetime | None]:
    """Return ``from`` and ``to`` of validated parameters.

    Raises:
        BadRequest: the period ends before it begins.
    """
    since, until = asked.get("from"), asked.get("to")
    if since is not None and until is not None and since > until:
        message = "'from' is later than 'to'."
        raise BadRequest(message, details=[Detail("/from", "out-of-range", message)])
    return since, until


class EventPageLinks(JsonStruct):
    self_: Link
    parent: Link
    next: Link | None = None


class EventPage(JsonStruct):
    """Events, newest first."""

    links: EventPageLinks = msgspec.field(name="_links")
    events: list[EventDocument]


_JSON: Final = "application/json"
_MAX_IN_FILE: Final = 10_000
_COLUMNS: Final = (
    *("at", "actor", "done", "kind", "subject", "changes", "reason"),
    *("tenantId", "accountId", "address", "requestId"),
)


def _cells(event: Event) -> Sequence[object]:
    """Return a line of the file, with `_COLUMNS`."""
    return (
        *(event.at, event.actor, describe_event(event)[0], event.kind, event.subject),
        *(describe_changes(event, None), event.reason, event.tenant_id, event.account_id),
        *(event.address, event.request_id),
    )


class EventViewSet(AppViewSet):
    """What happened to people, their rights and their credentials."""

    tag = "History"

    @route(
        "GET",
        "config/events",
        Level.SERVICE,
        Scope.USERS_READ,
        notes="platform admins: all; owners: their tenants and accounts; everyone: their own",
        name="events",
    )
    @operation(
        summary="List events, newest first",
        description="Sign-ins, tokens, roles, memberships, grants, domains, terms. Platform admins see all "
        "events, owners see events of their tenants and accounts, others see events by or about themselves. "
        "`Accept: text/csv` gives a file of the newest 10,000; `text/csv; for=people` is for spreadsheets. "
        "`X-Truncated` is `true` if there are more, which the `next` of `Link` gives.",
        query=EventParameters,
        responses={200: EventPage},
    )
    def list_events(self, request: Request) -> HttpResponseBase:
        # Only JSON is declared, so that generated clients have one typed answer.
        asked = _make_filter(
            self.query,
            "at",
            actor=_email(self.query.get("actor")),
            subject=_email(self.query.get("subject")),
            kind=self.query.get("kind"),
            tenant_id=self.query.get("tenant"),
        )
        accept = request.headers.get("Accept", "")
        # Any other type gets JSON, as everywhere.
        forms = (_JSON, CSV, CSV_FOR_PEOPLE)
        accepted = preferred_media_type(accept, forms) if CSV in accept else _JSON
        if accepted != _JSON:
            page = read_events(self.principal, asked, limit=_MAX_IN_FILE, cursor=self.query.get("cursor"))
            cells = (_cells(event) for event in page.rows)
            answer = stream_csv("events.csv", _COLUMNS, cells, for_people=accepted == CSV_FOR_PEOPLE)
            following = next_page(request, page.cursor)
            answer["X-Truncated"] = "false" if following is None else "true"
            if following is not None:
                answer["Link"] = f'<{following.href}>; rel="next"'
            return answer
        page = read_events(self.principal, asked, limit=self.query["limit"], cursor=self.query.get("cursor"))
        links = EventPageLinks(
            self_=link(request.get_full_path()),
            parent=link(reverse("contract")),
            next=next_page(request, page.cursor),
        )
        events = [
            EventDocument.of(
                event,
                reason=event.reason or None,
                text=describe_event(event)[0],
                changes=describe_changes(event, None),
            )
            for event in page.rows
        ]
        return Response(EventPage(links=links, events=events))
