"""The Audit page: timeline of all records, filters, saved views, CSV file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from django import forms
from django.conf import settings
from django.contrib import messages
from django.db import transaction
from django.http import HttpResponseRedirect
from django.urls import reverse
from django.utils.http import urlencode

from accounts.access.rights import rights_of
from accounts.access.scopes import Scope
from accounts.admin.base import StaffPage, may
from accounts.admin.finding import CompletedInput
from accounts.admin.names import names_of
from accounts.admin.words import describe_changes, describe_event, group_requests, rank_event
from accounts.dashboard import in_dashboard
from accounts.events import record_event
from accounts.models import AuditView, User
from accounts.models.events import EventKind
from accounts.models.history import RevisionKind, beside
from accounts.models.users import StaffRole
from logs.audit import REQUEST_KEY, REQUESTS_KEY
from tenantadmin.backoffice.audit.entries import KIND_CHOICES, Source
from tenantadmin.backoffice.audit.timeline import (
    SPANS,
    Unclear,
    given_filters,
    parse_filters,
    read_audit,
    walk_audit,
)
from tenantadmin.lib.core.errors import BadRequest
from tenantadmin.lib.core.formats import day_in_words
from tenantadmin.lib.core.timestamps import now
from tenantadmin.lib.http.streaming import stream_csv

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse, QueryDict
    from django.http.response import HttpResponseBase

    from accounts.admin.names import Names
    from accounts.models import Revision
    from tenantadmin.backoffice.audit.entries import Entry
    from tenantadmin.backoffice.audit.timeline import AuditFilter


_PAGE: Final = 50
#: Maximum rows of a CSV file, and rows read at a time.
MOST_IN_FILE: Final = 10_000
_PIECE: Final = 1000
_MAX_VIEWS: Final = 50
_HEADER: Final = (
    *("at", "kind", "who", "on", "tenant", "account", "what", "detail", "reason", "address", "request"),
)


class FilterForm(forms.Form):
    """The fields of the filter that complete names."""

    use_required_attribute = False

    who = forms.CharField(label="Who", widget=CompletedInput("people", placeholder="Name, email or job"))
    what = forms.CharField(
        label="About", widget=CompletedInput("people", placeholder="Name, email or domain")
    )
    tenant = forms.CharField(label="Tenant", widget=CompletedInput("tenants", placeholder="Name or FQDN"))
    account = forms.CharField(label="Account", widget=CompletedInput("accounts", placeholder="Name"))


class ViewForm(forms.Form):
    """A name for the filters."""

    name = forms.CharField(max_length=100)


def _explain_empty(filters: AuditFilter) -> str:
    """Say that no record fits, and since when records are kept."""
    today = now().date()
    days = {
        word: day_in_words(day, today)
        for word, day in (("from", filters.since), ("until", filters.until))
        if day is not None
    }
    if filters.since == filters.until and days:
        days = {"on": days["from"]}
    if filters.what or filters.kind or filters.tenant or filters.account:
        told = "Nothing that fits is recorded"
    else:
        told = f"{filters.who} did nothing that is recorded" if filters.who else "Nothing is recorded"
    said = [" ".join([told, *(f"{word} {day}" for word, day in days.items())]) + "."]
    if filters.what:
        said.append("“About” finds only events.")
    kept = (now() - min(settings.EVENT_RETENTION, settings.AUDIT_RETENTION)).date()
    said.append(f"All records since {day_in_words(kept, today)} are kept.")
    return " ".join(said)


class ReadsAudit(StaffPage):
    """A page that lists acts."""

    def readable(self, entries: Sequence[Entry]) -> Sequence[Entry]:
        """Return the entries as the user may see them: platform admins see all."""
        return entries if may(self.request, StaffRole.ADMIN) else hide_statements(entries, reader=self.user)


class AuditListPage(ReadsAudit):
    """All records, newest first."""

    title = "Audit"
    template_name = "backoffice/audit.html"

    def read(self) -> Mapping[str, Any]:
        given = given_filters(self.request.GET)
        content: dict[str, Any] = {
            "given": given,
            "query": urlencode(given),
            "fields": FilterForm(given),
            "spans": SPANS,
            "kind_choices": KIND_CHOICES,
            "views": [(view, urlencode(view.filters)) for view in self._views()],
            "most": MOST_IN_FILE,
        }
        try:
            filters = parse_filters(given)
            page = read_audit(filters, limit=_PAGE, cursor=self.request.GET.get("cursor") or None)
        except Unclear as error:
            choices = [(title, urlencode({**given, error.name: value})) for value, title in error.choices]
            return {**content, "error": error, "choices": choices}
        except BadRequest as error:
            return {**content, "error": error}
        names = names_of(ids_of(page.entries, filters))
        return {
            **content,
            "acts": describe_acts(self.readable(page.entries), names),
            "empty": "" if page.entries else _explain_empty(filters),
            "cursor": page.cursor,
            "names": names,
            "filters": filters,
        }

    def get(self, request: HttpRequest, **_: Any) -> HttpResponseBase:
        if request.GET.get("format") == "csv":
            return self._file()
        content = self.read()
        return self.show(self.template_name, content, status=400 if "error" in content else 200)

    def _file(self) -> HttpResponseBase:
        given = given_filters(self.request.GET)
        filters = parse_filters(given)
        # The file leaves the service, so the download is recorded.
        self._record("audit.exported", {"filters": given})
        return stream_csv("audit.csv", _HEADER, _cells(filters, readable=self.readable))

    def post(self, request: HttpRequest, **_: Any) -> HttpResponse:
        """Save the filters as a named view, or delete a view."""
        given = given_filters(request.POST)
        if "forget" in request.POST:
            self._forget(request.POST["forget"])
        else:
            self._save(request.POST, given)
        return HttpResponseRedirect(f"{reverse('admin:audit')}?{urlencode(given)}")

    def _save(self, sent: QueryDict, given: dict[str, str]) -> None:
        form = ViewForm(sent)
        parse_filters(given)
        if not form.is_valid() or not given:
            messages.error(self.request, "Filter something, and give the view a name of 1 to 100 characters.")
            return
        name = form.cleaned_data["name"]
        with transaction.atomic():
            # Locked, so that two requests at once cannot exceed the limit.
            user = User.objects.select_for_update(no_key=True).get(email=self.actor)
            if user.audit_views.exclude(name=name).count() >= _MAX_VIEWS:
                messages.error(self.request, f"You have {_MAX_VIEWS} views. Forget one first.")
                return
            AuditView.objects.update_or_create(user=user, name=name, defaults={"filters": given})
            self._record("view.saved", {"name": name, "filters": given})
        messages.success(self.request, f"Saved the view {name}.")

    def _forget(self, sent: str) -> None:
        with transaction.atomic():
            view = self._views().filter(pk=sent).first() if sent.isascii() and sent.isdigit() else None
            if view is None:
                messages.error(self.request, "There is no such view.")
                return
            view.delete()
            self._record("view.forgotten", {"name": view.name})
        messages.success(self.request, f"Deleted the view {view.name}.")

    def _views(self) -> Any:
        return AuditView.objects.filter(user__email=self.actor)

    def _record(self, act: str, more: Mapping[str, Any]) -> None:
        record_event(EventKind.STAFF_ACTED, actor=self.actor, subject=self.actor, after={"act": act, **more})


def hide_statements(entries: Iterable[Entry], *, reader: User) -> list[Entry]:
    """Return entries without the statements of tenants that ``reader`` has no access to, in one query.

    Statements of ``reader`` itself stay.
    """
    own = rights_of(reader).own_on_tenants.tenants
    return [
        replace(entry, code="", reason="The statement is shown to staff with access to the tenant.")
        if entry.source is Source.QUERY
        and entry.who != reader.email
        and Scope.LOGS_QUERY not in own.get(entry.row.tenant_id, ())
        else entry
        for entry in entries
    ]


def ids_of(entries: Sequence[Entry], filters: AuditFilter) -> set[UUID]:
    """Return the ids of the tenants and accounts that a list of acts names."""
    found = chain.from_iterable((entry.tenant_id, entry.account_id) for entry in entries)
    return {key for key in (*found, filters.tenant, filters.account) if key is not None}


def _cells(
    filters: AuditFilter, *, readable: Callable[[Sequence[Entry]], Sequence[Entry]]
) -> Iterator[list[Any]]:
    for entries in walk_audit(filters, page=_PIECE, most=MOST_IN_FILE):
        names = names_of(ids_of(entries, filters))
        for entry in readable(entries):
            what = phrase_of(entry)[0]
            said = (what, detail_of(entry, names, what=what))
            yield [
                entry.at,
                entry.kind,
                entry.who,
                entry.what,
                entry.tenant_id,
                entry.account_id,
                ": ".join(filter(None, said)),
                entry.code,
                entry.reason,
                entry.address,
                entry.request_id,
            ]


_SOURCES: Final = {Source.READ: "read the raw log", Source.QUERY: "ran SQL over the log"}
_FIGURES: Final = "read figures from the log"
_VALUE: Final = 200


@dataclass(frozen=True, slots=True)
class Act:
    """What one request did. ``entry`` tells it best; ``more`` are its other records, in words."""

    entry: Entry
    #: In the past, without who: "changed the rules", and what leads to the name: "of".
    what: str
    joint: str
    detail: str
    reason: str
    #: Text and address of the record.
    more: Sequence[tuple[str, str]]
    #: Of the record, or of the difference of the one document that changed.
    href: str
    #: How often it was done in a row. ``entry`` is the newest.
    times: int = 1

    def is_like(self, other: Act) -> bool:
        """Return True if both say the same, such as a token that a dashboard renews each hour."""

        def said(act: Act) -> tuple[Any, ...]:
            entry = act.entry
            place = (entry.tenant_id, entry.account_id, entry.address)
            return entry.who, act.what, act.detail, act.reason, *place, entry.code

        return said(self) == said(other) and not (self.more or other.more or self.entry.code)


def describe_acts(entries: Sequence[Entry], names: Names) -> list[Act]:
    """Return the acts of a page of the timeline, newest first. Records of one request are one act."""
    requests = group_requests(
        entries, lambda entry: None if entry.source is Source.READ else (entry.request_id, entry.who)
    )
    acts: list[Act] = []
    for act in (_describe(found, names) for found in requests):
        if acts and acts[-1].is_like(act):
            acts[-1] = replace(acts[-1], times=acts[-1].times + 1)
        else:
            acts.append(act)
    return acts


def _describe(entries: Sequence[Entry], names: Names) -> Act:
    main = min(entries, key=_rank)
    # The document that the act changed, and not one of another place.
    place = (main.tenant_id, main.account_id)
    documents = [
        entry
        for entry in entries
        if entry.source is Source.REVISION and place == (entry.tenant_id, entry.account_id)
    ]
    record = documents[0] if len(documents) == 1 else main
    what, joint = phrase_of(main)
    others = [entry for entry in entries if entry is not main]
    return Act(
        entry=main,
        what=what,
        joint=joint,
        detail=detail_of(record, names, what=what),
        reason=next((entry.reason for entry in (main, *others) if entry.reason), ""),
        more=[(_whole(entry, names), href_of(entry)) for entry in others if entry is not record],
        href=href_of(record),
    )


def _rank(entry: Entry) -> int:
    """Return the rank of an entry in its request. The entry with the lowest rank tells the act."""
    if entry.source is not Source.EVENT:
        return 1
    return rank_event(entry.row)


def _whole(entry: Entry, names: Names) -> str:
    """Return an entry as one sentence, with the name of its tenant or account."""
    what, joint = phrase_of(entry)
    _, name = names.get(entry.tenant_id or entry.account_id or UUID(int=0), ("", ""))
    return " ".join(filter(None, (what, joint if name else "", name)))


def href_of(entry: Entry) -> str:
    """Return the address of a record, or of the difference that a revision made."""
    row = entry.row
    if entry.source is Source.REVISION and row.tenant_id:
        return in_dashboard(row.tenant_id, "history", kind=row.kind, seq=row.seq)
    return reverse(f"admin:{row._meta.app_label}_{row._meta.model_name}_change", args=[row.pk])


def phrase_of(entry: Entry) -> tuple[str, str]:
    """Return what was done in words, and what leads to the name of the tenant or account."""
    row = entry.row
    if entry.source is Source.EVENT:
        return describe_event(row)
    if entry.source is Source.REVISION:
        return row.done, "" if row.kind == RevisionKind.ACCOUNT else "of"
    if entry.source is Source.READ and row.key.startswith((REQUEST_KEY, REQUESTS_KEY)):
        return "read the request" if row.key.startswith(REQUEST_KEY) else "read requests", "of"
    return _FIGURES if getattr(row, "by_service", False) else _SOURCES[entry.source], "of"


def describe_revision(row: Revision) -> str:
    """Return a change of a document in words, for a row that names the document's tenant or account."""
    comment = row.summary.get("comment")
    said = f"{row.text} (“{comment}”)" if comment else row.text
    if not beside(row.done, row.text):
        return row.done + said.removeprefix(row.text)
    return f"{row.document_name}: {said}"


def detail_of(entry: Entry, names: Names, *, what: str) -> str:
    """Return in words what changed, or how a query ended, beside ``what`` was done."""
    if entry.source is Source.REVISION:
        return beside(what, entry.text)
    if entry.source is Source.EVENT:
        text = describe_changes(entry.row, names)
        return text if len(text) <= _VALUE else f"{text[: _VALUE - 1]}…"
    return entry.text
