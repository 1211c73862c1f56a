"""Pages of a tenant's invalidation markers. Making one: tables or a rule, preview, reason."""

from __future__ import annotations

from statistics import mean
from typing import TYPE_CHECKING, Any, ClassVar, Final
from urllib.parse import urlencode
from uuid import uuid4

from django import forms
from django.core import signing

from accounts.admin.pages.base import PART, ReasonForm, TenantActPage
from accounts.cursors import cut_page, older_than, write_cursor
from analytics.admin.pages.base import LogPage
from analytics.reports.blast import listing_sql, preview_rules, preview_tables
from analytics.reports.blast_tables import name_tables
from analytics.reports.reading import LogReader
from rules.admin.names import NamesRules, offer_rules
from rules.admin.rules import name_rules
from rules.admin.simple import split_names
from rules.conditions.globs import MAX_GLOB
from rules.language import read_rules
from rules.markers import (
    MANUAL,
    MarkerNotFound,
    NewMarker,
    RuleNotFound,
    create_marker,
    delete_marker,
    read_marker,
)
from rules.models import Marker
from rules.table_invalidation import invalidate_tables, named_tables
from tenantadmin.lib.core.errors import BadRequest
from tenantadmin.lib.core.formats import count, exact_time, number
from tenantadmin.lib.core.timestamps import now, parse_timestamp
from tenantadmin.lib.objectstore import default_store

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from django.db.models import QuerySet
    from django.http import HttpRequest, HttpResponse

    from accounts.admin.pages.base import Trail
    from accounts.models import Tenant
    from analytics.reports.blast import PreviewTarget
    from rules.markers import MarkerDocument

_PAGE = 50
#: What a preview signs. An earlier release signed something else, so it has another name.
_PREVIEWED: Final = "results-of-rules"


class MarkersForm(forms.Form):
    """Which markers the page shows. Active ones unless the user chooses others."""

    show = forms.ChoiceField(
        label="State", required=False, choices=[("", "Active"), ("past", "Expired"), ("all", "All")]
    )
    of = forms.CharField(label="Rule", required=False, max_length=128, widget=forms.Select)
    by = forms.CharField(label="Made by", required=False, max_length=320)

    def markers_of(self, tenant: Tenant) -> QuerySet[Marker]:
        """Return the chosen markers of a tenant."""
        chosen = self.cleaned_data if self.is_valid() else {}
        rows: QuerySet[Marker] = Marker.objects.remaining().filter(tenant=tenant).with_superseded()
        if chosen.get("show") != "all":
            side = "lte" if chosen.get("show") else "gt"
            rows = rows.filter(**{f"expires_at__{side}": now()})
        if rule := chosen.get("of"):
            rows = rows.filter(target_rule_id=rule)
        if email := chosen.get("by"):
            rows = rows.filter(created_by=email.lower())
        return rows


class MarkersPage(NamesRules):
    """The markers, newest first, and the rules that can be invalidated."""

    title = "Invalidate"
    template_name = "backoffice/tenant/markers.html"

    def read(self) -> Mapping[str, Any]:
        chosen = MarkersForm(self.request.GET)
        rows = chosen.markers_of(self.tenant)
        if cursor := self.request.GET.get("cursor"):
            rows = older_than(rows, cursor, time="invalidated_at")
        markers, more = cut_page(rows.order_by("-invalidated_at", "-pk"), _PAGE)
        last = markers[-1] if more else None
        rules = caching(self.live_rules)
        offer_rules(chosen["of"], name_rules(rules))
        tables = {table for rule in read_rules(self.live_rules) for table in named_tables(rule)}
        return {
            "tables": sorted(tables, key=str.lower),
            "markers": markers,
            "cursor": None if last is None else write_cursor([last.invalidated_at.isoformat(), last.pk]),
            "rules": rules,
            "form": chosen,
            "is_chosen": bool({*chosen.fields}.intersection(chosen.changed_data)),
            "now": now(),
            # No result in the cache is older.
            "emptied_at": self.live_ruleset and self.live_ruleset.modified_at,
        }


def caching(rules: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rules that cache, enabled ones first. Others have no results that could be stale."""
    rules = [rule for rule in rules if rule["action"] == "cache"]
    return sorted(rules, key=lambda rule: not rule["enabled"])


class MarkerForm(ReasonForm):
    """The tables or the rule, chosen on the page before, and the signed numbers of the preview."""

    tables = forms.CharField(widget=forms.HiddenInput, max_length=MAX_GLOB, required=False)
    rule = forms.CharField(widget=forms.HiddenInput, max_length=100, required=False)
    field_order = ("tables", "rule", "reason")


class InvalidatePage(LogPage, TenantActPage):
    """Preview what ends, of a rule or of all rules that can have results of tables, and end it."""

    title = "Invalidate"
    name = "marker.created"
    button = "Invalidate"
    is_destructive = True
    needs_live = True
    effect = (
        "These rules will serve no result from before the invalidation. The next request will be a miss, "
        "and the warehouse answers it."
    )
    template_name = "backoffice/tenant/invalidate.html"
    parts: ClassVar = {"ends": "backoffice/tenant/invalidate_ends.html"}
    form_class = MarkerForm

    def prepare(self) -> None:
        super().prepare()
        self.rules = {rule["id"]: rule for rule in caching(self.live_rules)}
        sent = self.request.POST or self.request.GET
        self.tables = split_names(sent.get("tables", "").replace("\0", "")[:MAX_GLOB])
        self.what = name_tables(self.tables)
        self.rule_id = sent.get("rule", "")
        if not self.tables and self.rule_id not in self.rules:
            raise RuleNotFound("Name a table, or choose a rule that caches.")

    def trail(self) -> Trail:
        return [*super().trail(), ("Invalidate", self.to("tenant-markers"))]

    def read(self) -> Mapping[str, Any]:
        log = LogReader(default_store(), self.tenant.pk, self.reader)
        if self.tables:
            preview = preview_tables(log, tables=self.tables, now=now())
        else:
            preview = preview_rules(log, rule_ids=[self.rule_id], now=now())
        targets = preview.targets
        # Rules that were not looked at are chosen too.
        unseen = preview.rule_ids[len(targets) :]
        if self.request.method == "POST":
            ticked = self.request.POST.getlist("rules")
        else:
            ticked = [target.rule_id for target in targets if target.suggested is not False]
        found = {it.rule_id: (it.entries, it.table_entries, it.bytes, it.refill_ms) for it in targets}
        return {
            "what": ", ".join(self.tables) or self.rule_names[self.rule_id],
            "preview": preview,
            "unseen": unseen,
            "ends": self._sum_up(found, ticked, preview.log_note),
            "signed": signing.dumps([found, preview.log_note], salt=_PREVIEWED),
            "targets": [
                (
                    target,
                    self.rule_names[target.rule_id],
                    target.why,
                    target.rule_id in ticked,
                    round(mean(hour.requests for hour in target.same_hour)),
                    *self._links(target, {query.name: query.sql for query in preview.queries}),
                )
                for target in targets
            ],
        }

    def post(self, request: HttpRequest, **more: Any) -> HttpResponse:
        """Invalidate, or say what the ticked rules end, by the numbers of the preview."""
        if part := self.parts.get(request.GET.get(PART, "")):
            found, log_note = self._previewed()
            return self.show(part, {"ends": self._sum_up(found, request.POST.getlist("rules"), log_note)})
        return super().post(request, **more)

    def _sum_up(
        self, found: Mapping[str, Sequence[int | None]], ticked: Sequence[str], log_note: str | None
    ) -> Mapping[str, Any]:
        """Return how many rules a marker is put on, and the sums of what that ends."""
        rows = [row for rule_id, row in found.items() if rule_id in ticked or not self.tables]
        names = ("entries", "reading", "bytes", "refill_ms")
        sums = {name: sum(row[place] or 0 for row in rows) for place, name in enumerate(names)}
        return {"rules": len(rows), "read": self.what if self.tables else "", "log_note": log_note, **sums}

    def _previewed(self) -> tuple[Mapping[str, Sequence[int | None]], str | None]:
        """Return the numbers of each rule in the preview that the user saw, and its note on the log."""
        try:
            found, log_note = signing.loads(self.request.POST.get("previewed", ""), salt=_PREVIEWED)
        except signing.BadSignature:
            return {}, None
        return found, log_note

    def _links(self, target: PreviewTarget, sql: Mapping[str, str]) -> tuple[str, str]:
        """Return the addresses of the results and of the hours, for staff who may run SQL."""
        if not self.has_access:
            return "", ""
        page = self.to("tenant-sql")
        statements = listing_sql(sql[f"{target.rule_id} live"]), sql[f"{target.rule_id} sameHour"]
        results, hours = (f"{page}?{urlencode({'sql': statement})}" for statement in statements)
        return results, hours

    def act(self, values: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        if self.tables:
            chosen = self.request.POST.getlist("rules")
            if not chosen:
                raise BadRequest("Choose at least one rule.")
            made = invalidate_tables(
                self.tenant.pk, tables=self.tables, reason=values["reason"], actor=self.actor, only=chosen
            )
        else:
            new = NewMarker(
                marker_id=f"staff-{uuid4().hex[:12]}",
                target_rule_id=self.rule_id,
                metadata={"reason": values["reason"]},
                invalidated_by={"ruleId": self.rule_id, "triggeredBy": MANUAL},
            )
            made = [create_marker(self.tenant.pk, new, actor=self.actor)]
        rule_ids = [marker.target_rule_id for marker in made]
        named = ", ".join(self.rule_names[rule_id] for rule_id in rule_ids)
        said = {"tables": self.tables} if self.tables else {}
        ids = [marker.marker_id for marker in made]
        return f"Invalidated: {named}. {self._ended(made)}", {"markers": ids, "rules": rule_ids, **said}

    def _ended(self, made: Sequence[MarkerDocument]) -> str:
        """Return what ended, by the numbers that the user saw in the preview."""
        found, log_note = self._previewed()
        if not found:
            return ""
        ends = self._sum_up(found, [marker.target_rule_id for marker in made], log_note)
        if not ends["entries"]:
            at = exact_time(parse_timestamp(made[0].invalidated_at))
            return f"No result older than {at} is served any more; by the log there was none."
        what = f", of which {number(ends['reading'])} read {self.what}" if ends["reading"] else ""
        return f"That ended {count(ends['entries'], 'cached result')}{what}."

    def done_at(self) -> str:
        return self.to("tenant-markers")


class RemoveMarkerPage(TenantActPage):
    """Remove a marker."""

    title = "Remove a marker"
    name = "marker.removed"
    button = "Remove"
    is_destructive = True
    effect = "Results from before the marker will be fresh again, unless something else ended them."

    def read(self) -> Mapping[str, Any]:
        return {"marker": read_marker(self.tenant.pk, self.kwargs["marker"])}

    def act(self, _values: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        marker: str = self.kwargs["marker"]
        if not delete_marker(self.tenant.pk, marker):
            raise MarkerNotFound
        return f"Removed the marker {marker}.", {"markers": [marker]}

    def done_at(self) -> str:
        return self.to("tenant-markers")
