"""Pages of a tenant's rules: their list and text, and a form for one."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Final

import duckdb
from django import forms
from django.http import JsonResponse
from django.template.loader import render_to_string

from accounts.admin.forms import rules_editor
from accounts.admin.pages.base import PART, ReasonForm, TenantActPage, may
from accounts.models.users import StaffRole
from analytics.admin.completion import log_words, rule_words
from analytics.admin.effects import RuleEffect, read_effects
from analytics.admin.pages.base import LogPage, say_published
from analytics.admin.savings import savings_of
from analytics.reports.reading import LogReader
from analytics.summaries.activity import DEFAULT_DAYS
from rules.admin.forms import RemovalsField
from rules.admin.rules import check_text, compare_three, parse_rules, rules_text
from rules.admin.simple import (
    ACTIONS,
    conditions_of,
    free_id,
    others_of,
    split_names,
    with_rule,
)
from rules.drafts import create_draft, list_drafts
from rules.errors import RulesetRejected
from rules.markers import RuleNotFound
from rules.rule_text import say_conditions
from rules.ruleset import read_ruleset
from rules.write import write_ruleset
from tenantadmin.lib.core.errors import ApiError, Conflict, Forbidden
from tenantadmin.lib.core.timestamps import days_before
from tenantadmin.lib.objectstore import StoreError, default_store

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from uuid import UUID

    from django.http import HttpRequest, HttpResponse

    from accounts.admin.pages.base import Trail
    from rules.ruleset import RulesetState

#: The maximum length of the editor's text. The API accepts 1 MiB.
_MAX_TEXT: Final = 1_000_000


class RulesTextForm(ReasonForm):
    """The text of rules, and the version that it changes."""

    rules = forms.CharField(label="Rules", max_length=_MAX_TEXT, widget=rules_editor(), strip=False)
    etag = forms.CharField(widget=forms.HiddenInput)
    base_seq = forms.IntegerField(widget=forms.HiddenInput, min_value=0)


class RulesForm(RulesTextForm):
    """The text of the live rules, and removals to confirm."""

    confirm_deletes = RemovalsField()
    field_order = ("rules", "confirm_deletes", "reason")


class RulesEditor(LogPage, TenantActPage):
    """A page with the editor of rules, which lints while the user types. Only platform admins save."""

    button = "Save"
    #: Whether saving removes rules that have active markers, which the user confirms.
    removes: ClassVar[bool] = False

    def post(self, request: HttpRequest, **more: Any) -> HttpResponse:
        if request.GET.get(PART) == "check":
            return self._check(request)
        if request.GET.get(PART) == "values":
            return self._values()
        if not may(request, StaffRole.ADMIN):
            raise Forbidden("Support may look at rules and try them out. A platform admin saves them.")
        return super().post(request, **more)

    def _check(self, request: HttpRequest) -> HttpResponse:
        """Return the findings for the editor, and the diff as HTML."""
        confirmed = request.POST.getlist("confirm_deletes")
        checked = check_text(self.tenant.pk, request.POST.get("rules", ""), confirmed=confirmed)
        html = render_to_string("backoffice/tenant/rules_check.html", {"checked": checked, "page": self})
        return JsonResponse({"marks": [mark.as_json() for mark in checked.marks], "html": html})

    def _values(self) -> HttpResponse:
        """Return recent values of the log, which the editor completes."""
        self.require_access()
        log = LogReader(default_store(), self.tenant.pk, self.reader)
        return JsonResponse({"words": log_words(log, last=self.last_day)})


class PublishingPage(TenantActPage):
    """A page that publishes rules, or keeps them as a draft."""

    button = "Save and publish"
    effect = (
        "Saving will publish the rules at once. This will empty the cache. "
        "Keep them as a draft to see first what they would do."
    )
    #: The draft, if one was made.
    draft_id: UUID | None = None

    @property
    def name(self) -> str:  # type: ignore[override]
        return "draft.kept" if self.keeps_draft else "rules.published"

    @property
    def keeps_draft(self) -> bool:
        """True if the text is kept as a draft instead of saved."""
        return "draft" in self.request.POST

    def write(
        self,
        rules: list[Any],
        values: Mapping[str, Any],
        *,
        base_seq: int,
        confirm_deletes: Collection[str] = (),
    ) -> tuple[str, dict[str, Any]]:
        """Publish rules, or keep them as a draft. Return the message, and what the event adds."""
        if self.keeps_draft:
            document = {"rules": rules, "baseSeq": base_seq}
            self.draft_id = create_draft(tenant_id=self.tenant.pk, document=document, actor=self.actor).pk
            return "Kept as a draft. The live rules do not change.", {"draftId": str(self.draft_id)}
        written = write_ruleset(
            tenant_id=self.tenant.pk,
            document={"rules": rules},
            actor=self.actor,
            confirm_deletes=confirm_deletes,
            expected_etag=values["etag"],
        )
        return say_published(self, f"Saved as revision {written.seq}.", written.seq), {"seq": written.seq}

    def done_at(self) -> str:
        if self.draft_id is not None:
            return self.to("tenant-draft", draft=self.draft_id)
        return self.to("tenant-rules")


class RulesPage(PublishingPage, RulesEditor):
    """Edit the live rules: save or keep as a draft. Shows both versions if another user saved first."""

    title = "Rules"
    template_name = "backoffice/tenant/rules.html"
    parts: ClassVar[Mapping[str, str]] = {"list": "backoffice/tenant/rules_list.html"}
    form_class = RulesForm
    removes = True

    def initial(self) -> dict[str, Any]:
        if self.tenant.deleted_at is not None:
            return {}
        stored = read_ruleset(self.tenant.pk)
        return {"rules": rules_text(stored.rules), "etag": stored.etag, "base_seq": stored.seq}

    def read(self) -> Mapping[str, Any]:
        if self.tenant.deleted_at is not None:
            return {}
        stored = read_ruleset(self.tenant.pk)
        listed = [(rule, say_conditions(rule["conditions"])) for rule in stored.rules]
        last = self.last_day
        period = {"first": days_before(last, DEFAULT_DAYS - 1), "last": last}
        if self.request.GET.get(PART) == "list":
            try:
                savings = savings_of(self.tenant.pk, **period, reader=self.reader)
            except (ApiError, StoreError, duckdb.Error):
                savings = None
            effects = read_effects(self.tenant.pk, **period, savings=savings)
            return {
                **period,
                "is_estimated": savings is None,
                "listed": [
                    (rule, said, (effects or {}).get(rule["id"], RuleEffect())) for rule, said in listed
                ],
                "has_effects": effects is not None,
            }
        return {
            **period,
            "seq": stored.seq,
            "modified_at": stored.modified_at,
            "drafts": list_drafts(self.tenant.pk),
            "listed": [(rule, said, None) for rule, said in listed],
            "words": rule_words(stored.rules),
        }

    def act(self, values: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        return self.write(
            parse_rules(values["rules"]),
            values,
            base_seq=values["base_seq"],
            confirm_deletes=values["confirm_deletes"],
        )

    def refused(self, form: ReasonForm, error: ApiError) -> HttpResponse:
        values = form.cleaned_data
        more: dict[str, Any] = {}
        if isinstance(error, Conflict):
            three = compare_three(
                self.tenant.pk, base_seq=values["base_seq"], rules=parse_rules(values["rules"])
            )
            more["three"] = three
            # The reader has now seen the other version, so saving again overwrites it.
            fresh = {"etag": three.etag, "base_seq": three.current_seq}
            form = RulesForm({**{name: values[name] for name in form.fields}, **fresh})
        else:
            more["checked"] = check_text(self.tenant.pk, values["rules"], confirmed=values["confirm_deletes"])
        content = {"form": form, "error": error, **self.read(), **more}
        return self.show(self.template_name, content, status=error.status)


_UNITS: Final = {"86400": "days", "3600": "hours", "60": "minutes", "1": "seconds"}


#: The fields of conditions. Where a rule's condition has another form, it stays as it is.
_CONDITIONS: Final = {
    "tables": "tables",
    "userName": "users",
    "isReadOnly": "reads",
    "hasNonDeterministicFunctions": "repeats",
}
_GROUPS: Final = {
    "The rule": ("rule_name", "place", "enabled"),
    "Which statements": ("tables", "users", "reads", "repeats"),
    "What it does": ("action", "targets", "keep_for", "unit", "per_user"),
    "The change": ("reason", "etag"),
}


class RuleForm(ReasonForm):
    """One rule. Conditions that it cannot show stay as they are."""

    rule_name = forms.CharField(label="Name", max_length=200)
    enabled = forms.BooleanField(label="Enabled", required=False)
    tables = forms.CharField(
        label="Of these tables",
        required=False,
        help_text="With commas: sales.orders, sales.items. Empty: any table.",
    )
    users = forms.CharField(
        label="For these users", required=False, help_text="With commas. Empty: all users."
    )
    reads = forms.BooleanField(label="Only statements that read", required=False)
    repeats = forms.BooleanField(label="Without functions such as now()", required=False)
    action = forms.ChoiceField(label="Then", choices=[*ACTIONS.items()])
    targets = forms.MultipleChoiceField(
        label="Makes results of these rules stale", widget=forms.CheckboxSelectMultiple
    )
    keep_for = forms.IntegerField(label="A result is fresh for", min_value=1)
    unit = forms.ChoiceField(label="Unit", choices=[*_UNITS.items()])
    per_user = forms.BooleanField(label="Each user gets their own results", required=False)
    place = forms.IntegerField(
        label="Place", min_value=1, help_text="The first enabled rule that matches decides."
    )
    etag = forms.CharField(widget=forms.HiddenInput)

    def groups(self) -> Iterator[tuple[str, list[forms.BoundField]]]:
        """Yield headings and fields in the order in which one thinks of a rule."""
        for heading, names in _GROUPS.items():
            if fields := [self[name] for name in names if name in self.fields]:
                yield heading, fields


class RuleFormPage(PublishingPage):
    """Edit one rule by a form."""

    title = "Edit a rule"
    needs: ClassVar[StaffRole] = StaffRole.ADMIN
    needs_live = True
    form_class = RuleForm
    template_name = "backoffice/tenant/rule.html"

    @cached_property
    def stored(self) -> RulesetState:
        return read_ruleset(self.tenant.pk)

    @cached_property
    def rule(self) -> Mapping[str, Any]:
        """The rule of the query string, as it is stored. Its id may be any text."""
        wanted = self.request.GET.get("rule")
        found = next((rule for rule in self.stored.rules if rule["id"] == wanted), None)
        if found is None:
            raise RuleNotFound
        return found

    def trail(self) -> Trail:
        return [*super().trail(), ("Rules", self.to("tenant-rules"))]

    def read(self) -> Mapping[str, Any]:
        others = others_of(self.rule["conditions"])
        return {"others": say_conditions(others) if others else ""}

    def form(self, data: Any = None) -> ReasonForm:
        form = super().form(data)
        others = others_of(self.rule["conditions"])
        hidden = {field for key, field in _CONDITIONS.items() if key in others}
        targets = form.fields["targets"]
        if self.rule["action"] != "invalidate":
            hidden.add("targets")
        elif isinstance(targets, forms.MultipleChoiceField):
            hidden |= {"action", "keep_for", "unit", "per_user"}
            targets.choices = [
                (rule["id"], rule.get("name") or rule["id"])
                for rule in self.stored.rules
                if rule["action"] == "cache" or rule["id"] in self.rule["invalidateRules"]
            ]
        if self.rule.get("varyBy", []) not in ([], ["userName"]):
            hidden.add("per_user")
        for name in hidden:
            del form.fields[name]
        return form

    def initial(self) -> dict[str, Any]:
        rule = self.rule
        conditions = rule["conditions"]
        others = others_of(conditions)
        seconds = rule["ttlSeconds"]
        unit = next(size for size in _UNITS if seconds % int(size) == 0)
        known = [it["id"] for it in self.stored.rules]
        lists = {
            name: conditions[key][operator] if key in conditions and key not in others else ()
            for name, key, operator in (("tables", "tables", "containsAny"), ("users", "userName", "in"))
        }
        return {
            **{name: ", ".join(values) for name, values in lists.items()},
            "rule_name": rule.get("name", ""),
            "enabled": rule.get("enabled", True),
            "reads": "isReadOnly" in conditions,
            "repeats": "hasNonDeterministicFunctions" in conditions,
            "action": rule["action"],
            "targets": rule.get("invalidateRules", ()),
            "keep_for": seconds // int(unit),
            "unit": unit,
            "per_user": bool(rule.get("varyBy")),
            "place": known.index(rule["id"]) + 1 if "id" in rule else len(known) + 1,
            "etag": self.stored.etag,
            **super().initial(),
        }

    def act(self, values: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        conditions = conditions_of(
            tables=split_names(values.get("tables", "")),
            users=split_names(values.get("users", "")),
            reads=values.get("reads", False),
            repeats=values.get("repeats", False),
        )
        changed: dict[str, Any] = {
            "name": values["rule_name"],
            "enabled": values["enabled"],
            "conditions": conditions | others_of(self.rule["conditions"]),
            "action": values.get("action", self.rule["action"]),
        }
        if "targets" in values:
            changed["invalidateRules"] = values["targets"]
        rule = {
            **self.rule,
            "id": self.rule.get("id") or free_id(values["rule_name"], self.stored.rules),
            **changed,
        }
        if "keep_for" in values:
            rule["ttlSeconds"] = values["keep_for"] * int(values["unit"])
        if rule["action"] != "cache":
            # Only rules that cache have results to share.
            rule.pop("varyBy", None)
        elif "per_user" in values:
            rule["varyBy"] = ["userName"] if values["per_user"] else []
        rules = with_rule(self.stored.rules, rule, place=values["place"])
        message, after = self.write(rules, values, base_seq=self.stored.seq)
        return message, {**after, "ruleId": rule["id"]}

    def refused(self, form: ReasonForm, error: ApiError) -> HttpResponse:
        findings = error.report.errors if isinstance(error, RulesetRejected) else []
        for finding in findings:
            form.add_error(None, f"{finding.code}: {finding.message}")
        return super().refused(form, error)


class AddRulePage(RuleFormPage):
    """Add a rule by the form."""

    title = "Add a rule"
    #: What a new rule begins with.
    rule: ClassVar[Mapping[str, Any]] = {
        "action": "cache",
        "conditions": conditions_of(tables=(), users=(), reads=True, repeats=True),
        "ttlSeconds": 3600,
        "varyBy": [],
    }
