"""Pages of a tenant's invalidation markers. Making one takes three steps: rule, preview, reason."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode
from uuid import uuid4

from django import forms

from accounts.admin.pages.base import ReasonForm, TenantActPage, TenantPage
from accounts.cursors import cut_page, older_than, write_cursor
from analytics.admin.pages.base import LogPage
from analytics.reports.blast import preview_invalidation
from analytics.reports.reading import LogReader
from rules.markers import (
    MANUAL,
    MarkerNotFound,
    NewMarker,
    create_marker,
    delete_marker,
    read_marker,
)
from rules.models import Marker
from rules.ruleset import read_ruleset
from tenantadmin.lib.core.timestamps import now
from tenantadmin.lib.objectstore import default_store

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.db.models import QuerySet

    from accounts.models import Tenant

_PAGE = 50


class MarkersForm(forms.Form):
    """Which markers the page shows. Active ones unless the user chooses others."""

    show = forms.ChoiceField(
        label="State", required=False, choices=[("", "Active"), ("past", "Expired"), ("all", "All")]
    )
    of = forms.CharField(
        label="Rule", required=False, max_length=128, widget=forms.TextInput(attrs={"list": "rules"})
    )
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


class MarkersPage(TenantPage):
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
        rules = [] if self.tenant.deleted_at else read_ruleset(self.tenant.pk).rules
        # A rule that stores nothing and invalidates nothing has nothing to end.
        rules = [rule for rule in rules if rule["action"] in {"cache", "invalidate"}]
        return {
            "markers": markers,
            "cursor": None if last is None else write_cursor([last.invalidated_at.isoformat(), last.pk]),
            "rules": rules,
            "form": chosen,
            "is_chosen": bool({*chosen.fields}.intersection(chosen.changed_data)),
            "now": now(),
        }


class MarkerForm(ReasonForm):
    """The rules, chosen on the page before."""

    rule = forms.CharField(widget=forms.HiddenInput, max_length=100)
    field_order = ("rule", "reason")


class InvalidatePage(LogPage, TenantActPage):
    """Preview what a marker on rules would end, and make it."""

    title = "Invalidate"
    name = "marker.created"
    button = "Invalidate"
    is_destructive = True
    template_name = "backoffice/tenant/invalidate.html"
    form_class = MarkerForm

    def read(self) -> Mapping[str, Any]:
        rule = self.request.POST.get("rule") or self.request.GET.get("rule", "")
        log = LogReader(default_store(), self.tenant.pk, self.reader)
        preview = preview_invalidation(log, rule_id=rule, now=now())
        sql = {
            query.name: f"{self.to('tenant-sql')}?{urlencode({'sql': query.sql})}"
            for query in preview.queries
        }
        targets = [
            (target, sql[f"{target.rule_id} live"], sql[f"{target.rule_id} sameHour"])
            for target in preview.targets
        ]
        return {"rule_id": rule, "preview": preview, "targets": targets}

    def act(self, values: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        # A rule that invalidates others stores no results itself.
        rules = {rule["id"]: rule for rule in read_ruleset(self.tenant.pk).rules}
        targets = rules.get(values["rule"], {}).get("invalidateRules") or [values["rule"]]
        made = [
            create_marker(
                self.tenant.pk,
                NewMarker(
                    marker_id=f"staff-{uuid4().hex[:12]}",
                    target_rule_id=target,
                    metadata={"reason": values["reason"]},
                    invalidated_by={"ruleId": values["rule"], "triggeredBy": MANUAL},
                ),
                actor=self.actor,
            )
            for target in targets
        ]
        ids = [marker.marker_id for marker in made]
        return f"Invalidated {', '.join(targets)}.", {"markers": ids, "rules": list(targets)}

    def done_at(self) -> str:
        return self.to("tenant-markers")


class RemoveMarkerPage(TenantActPage):
    """Remove a marker."""

    title = "Remove a marker"
    name = "marker.removed"
    button = "Remove"
    is_destructive = True
    effect = "Results from before the marker are fresh again, unless something else ended them."

    def read(self) -> Mapping[str, Any]:
        return {"marker": read_marker(self.tenant.pk, self.kwargs["marker"])}

    def act(self, _values: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        marker: str = self.kwargs["marker"]
        if not delete_marker(self.tenant.pk, marker):
            raise MarkerNotFound
        return f"Removed the marker {marker}.", {"markers": [marker]}

    def done_at(self) -> str:
        return self.to("tenant-markers")
