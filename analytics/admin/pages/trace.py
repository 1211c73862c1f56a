"""The page that traces a request: which rule decides, and why the other rules do not match."""

from __future__ import annotations

import json
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Final
from uuid import UUID

import msgspec
from django import forms
from django.utils.html import format_html

from accounts.admin.pages.base import PART
from analytics.admin.pages.base import LogPage
from analytics.explain import explain_logged
from analytics.reports.reading import LogReader, Window
from analytics.reports.traffic import TrafficFilter, list_traffic
from logs.columns import BY_NAME
from logs.statuses import say_status
from rules.admin.json_lines import parse_text
from rules.conditions.keys import CONDITION_KEYS
from rules.conditions.request import InvalidRequest
from rules.drafts import list_drafts
from rules.explain import Outcome, explain
from rules.in_force import choose_rules
from rules.language import read_rules
from rules.rule_text import say_conditions
from rules.ruleset import read_caching
from tenantadmin.lib.core.errors import ApiError, ValidationFailed
from tenantadmin.lib.core.formats import duration, span
from tenantadmin.lib.core.timestamps import days_before, time_of
from tenantadmin.lib.http.formats import moment
from tenantadmin.lib.objectstore import default_store

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from django.http import HttpRequest, HttpResponse, QueryDict
    from django.http.response import HttpResponseBase

    from rules.explain import ExplainedRule, FailedTest
    from rules.models import RuleDraft

    #: A rule, its outcome in words, and the tests that it fails, each with its words.
    ShownRule = tuple[ExplainedRule, str, list[tuple[FailedTest, str]]]

_MAX_TEXT: Final = 1_000_000
#: How many of the newest misses are offered, and of how many days.
_MISSES: Final = 10
_MISS_DAYS: Final = 7
#: A read of one table, with every condition key.
EXAMPLE: Final = {
    "standardizedSql": "SELECT count(*) FROM sales.orders",
    "statementType": "SELECT",
    "tables": ["sales.orders"],
    "tableCount": 1,
    "isReadOnly": True,
    "isDataChange": False,
    "isDDL": False,
    "hasParameters": False,
    "hasNonDeterministicFunctions": False,
    "cacheOverride": None,
    "userName": "ana",
    "clientIp": "192.0.2.10",
    "userAgent": "psql",
    "host": None,
    "origin": None,
    "referer": None,
    "operationType": "EXECUTE_STATEMENT",
    "adapterType": "snowflake",
    "serverHostname": None,
}
_OUTCOMES: Final = {
    Outcome.DECIDED: "decides",
    Outcome.MATCHED_LATER: "matches, but comes later",
    Outcome.NOT_MATCHED: "does not match",
    Outcome.DISABLED: "off",
}


class ChosenRulesForm(forms.Form):
    """The rules that decide the traced request."""

    #: Which rules decide without a choice.
    default: ClassVar[str] = "Empty: the rules in force now decide."
    seq = forms.IntegerField(
        label="Under the rules of a revision",
        required=False,
        min_value=0,
    )
    draft = forms.TypedChoiceField(label="Or of a draft", required=False, coerce=UUID, empty_value=None)

    def __init__(self, *args: Any, drafts: Iterable[RuleDraft], **options: Any) -> None:
        super().__init__(*args, **options)
        names = [(str(draft.pk), draft.title) for draft in drafts]
        self.fields["seq"].help_text = self.default
        self.fields["draft"].choices = [("", "none"), *names]  # type: ignore[attr-defined]  # of a choice

    def clean(self) -> dict[str, Any]:
        values: dict[str, Any] = self.cleaned_data
        if values.get("seq") is not None and values.get("draft"):
            self.add_error("draft", "Choose a revision or a draft, not both.")
        return values


class PastedForm(ChosenRulesForm):
    """A request as JSON."""

    request = forms.CharField(
        label="Request",
        max_length=_MAX_TEXT,
        widget=forms.Textarea(attrs={"rows": 24}),
        help_text="An example: change the values that matter, such as tables and userName.",
    )
    field_order = ("request", "seq", "draft")


class LoggedForm(ChosenRulesForm):
    """A logged request."""

    default: ClassVar[str] = "Empty: the rules that were in force at the time of the request decide."
    log_id = forms.CharField(label="Its id (logId)", max_length=1000, strip=False)
    day = forms.DateField(
        label="Day (UTC)",
        required=False,
        widget=forms.DateInput(attrs={"type": "date"}),
        help_text="Empty: the newest day that has the entry.",
    )
    field_order = ("log_id", "day", "seq", "draft")


class TracePage(LogPage):
    """Explain a pasted request, or a logged one (only for members)."""

    title = "Explain"
    template_name = "backoffice/tenant/trace.html"
    parts: ClassVar[Mapping[str, str]] = {"misses": "backoffice/tenant/trace_misses.html"}

    def read(self) -> Mapping[str, Any]:
        values = {name: self.request.GET[name] for name in LoggedForm.base_fields if name in self.request.GET}
        return {
            "pasted": PastedForm(initial={"request": json.dumps(EXAMPLE, indent=2)}, drafts=self.drafts),
            "logged": LoggedForm(initial=values, drafts=self.drafts),
        }

    @cached_property
    def drafts(self) -> list[RuleDraft]:
        return [] if self.tenant.deleted_at else list_drafts(self.tenant.pk)

    def get(self, request: HttpRequest, **more: Any) -> HttpResponseBase:
        if request.GET.get(PART) in self.parts:
            return self._show_misses()
        # Other pages lead to the explanation of a request.
        if "log_id" in request.GET and self.has_access:
            return self._explain(request.GET)
        return super().get(request, **more)

    def post(self, request: HttpRequest, **_: Any) -> HttpResponse:
        return self._explain(request.POST)

    def _explain(self, asked: QueryDict) -> HttpResponse:
        is_logged = "log_id" in asked
        form = (LoggedForm if is_logged else PastedForm)(asked, drafts=self.drafts)
        content = {**self.read(), "logged" if is_logged else "pasted": form}
        status = 200 if form.is_valid() else 400
        if status == 200:
            try:
                content |= self._trace_logged(form) if is_logged else self._trace_pasted(form)
            except ApiError as error:
                content["error"], status = error, error.status
        return self.show(self.template_name, content, status=status)

    def _show_misses(self) -> HttpResponse:
        self.require_access()
        content: dict[str, Any] = {"names": self.rule_names}
        try:
            content["misses"] = list_traffic(
                LogReader(default_store(), self.tenant.pk, self.reader),
                window=Window(days_before(self.last_day, _MISS_DAYS - 1), self.last_day),
                matching=TrafficFilter(status="MISS"),
                limit=_MISSES,
                cursor=None,
            ).requests
        except ApiError as error:
            content["error"] = error
        return self.show(self.parts["misses"], content)

    def _trace_pasted(self, form: forms.Form) -> dict[str, Any]:
        values = form.cleaned_data
        request = _parse_object(values["request"])
        chosen = choose_rules(self.tenant.pk, seq=values["seq"], draft_id=values["draft"])
        try:
            explained = explain(
                read_rules(chosen.rules), request, cache_enabled=read_caching(self.tenant.pk).enabled
            )
        except InvalidRequest as error:
            raise ValidationFailed(str(error)) from error
        return {
            "explained": {"ruleset": chosen.ruleset, "decision": explained.decision},
            **_in_order(explained.rules),
        }

    def _trace_logged(self, form: forms.Form) -> dict[str, Any]:
        self.require_access()
        values = form.cleaned_data
        explained = explain_logged(
            default_store(),
            tenant=self.tenant.pk,
            day=values["day"],
            log_id=values["log_id"],
            seq=values["seq"],
            draft_id=values["draft"],
            reader=self.reader,
        )
        miss = explained.miss
        logged = explained.logged
        names = dict(self.rule_names)
        if logged.matched_rule and logged.matched_rule_name:
            names.setdefault(logged.matched_rule, logged.matched_rule_name)
        return {
            "explained": explained,
            **_in_order(explained.rules),
            "why_miss": None if miss is None else miss.text,
            "miss_facts": [] if miss is None else _facts(msgspec.to_builtins(miss), names),
            "logged_facts": _facts(msgspec.to_builtins(logged), names),
        }


def _in_order(rules: Sequence[ExplainedRule]) -> dict[str, Any]:
    """Return the rules that were asked, in order, the rules behind the one that decides, and their names."""
    ordered = sorted(rules, key=lambda rule: rule.position)
    last = next((rule.position for rule in ordered if rule.outcome == Outcome.DECIDED), len(ordered))
    shown = [
        (rule, _OUTCOMES[rule.outcome], [(test, say_conditions(_condition(test))) for test in rule.failed])
        for rule in ordered
    ]
    return {
        "asked": shown[: last + 1],
        "behind": shown[last + 1 :],
        "names": {rule.rule_id: rule.name for rule in ordered},
    }


def _condition(test: FailedTest) -> dict[str, Any]:
    is_flag = isinstance(test.operand, bool)
    return {test.key: test.operand if is_flag else {test.operator: test.operand}}


#: Labels for fields of the log and of the evidence for a miss.
LABELS: Final = {
    "logId": "logId",
    "timestamp": "Time",
    "cacheStatus": "Status",
    "missReason": "Reason of the miss",
    "matchedRule": "Rule",
    "cacheKey": "Key in the cache",
    "cacheAgeSeconds": "Age of the result",
    "cacheTtlSeconds": "Fresh for",
    "warehouseExecutionTimeMs": "Time in the warehouse",
    "standardizedSql": "Statement",
    "tables": "Tables",
    "statusCode": "Status code for the client",
    "queryId": "Id of the query in the warehouse",
    "reconstructed": "Where the reason is from",
    "revision.seq": "Revision of the rules",
    "revision.changedAt": "The rules were written",
    "cacheKeyVersion": "Version of the keys in the cache",
    "lastStore.logId": "logId of the request that stored it last",
    "lastStore.at": "That request began",
    "storedAt": "Its result was stored",
    "expiredAt": "The result expired",
    "ttlSeconds": "Fresh for",
    "marker.markerId": "Marker",
    "marker.invalidatedAt": "Invalidated",
    "marker.invalidatedBy.ruleId": "Invalidated by the rule",
    "marker.invalidatedBy.triggeredBy": "Invalidated by",
    "marker.invalidatedBy.statement": "Statement that invalidated it",
    "lastExecution.logId": "logId of the last execution, which failed",
    "lastExecution.at": "Last execution, which failed",
    "firstInDays": "Days without an earlier store",
    "nearest.logId": "logId of the nearest request: the same statement, other values",
    "nearest.at": "Nearest request",
    "nearest.parameterValues": "Values of the nearest request",
}


#: Fields that the page says elsewhere: the sentence above the table, and the name in place of a rule's id.
SAID: Final = {"reason", "text", "ttlNeeded", "matchedRuleName"}


def _show(name: str, value: Any, names: Mapping[str, str]) -> Any:
    """Return a value as text: times and durations as on every page, rules by their names."""
    if name in {"matchedRule", "marker.invalidatedBy.ruleId"}:
        return format_html('<span title="{}">{}</span>', value, names.get(value, value))
    if name == "reconstructed":
        return "earlier requests in the log" if value else "what the Gateway logged of this request"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(value)
    if name.endswith("Seconds"):
        return span(value)
    if name.endswith("Ms"):
        return duration(value)
    if name == "cacheStatus":
        return say_status(value)
    if name == "timestamp":
        at = time_of(value)
        return value if at is None else moment(at)
    return moment(value) if name.endswith((".at", "At")) else value


def _facts(fields: Mapping[str, Any], names: Mapping[str, str], *, above: str = "") -> list[tuple[str, Any]]:
    """Return labels and values for fields of the log or the evidence for a miss, without nulls."""
    facts: list[tuple[str, Any]] = []
    for name, value in fields.items():
        if isinstance(value, dict):
            facts += _facts(value, names, above=f"{above}{name}.")
        elif name not in SAID and value is not None:
            key = f"{above}{name}"
            facts.append((LABELS.get(key, key), _show(key, value, names)))
    return facts


def _parse_object(text: str) -> dict[str, Any]:
    value, _ = parse_text(text)
    if not isinstance(value, dict):
        raise ValidationFailed("A request must be an object: { … }.")
    unknown = sorted(value.keys() - CONDITION_KEYS.keys() - BY_NAME.keys())
    if unknown:
        raise ValidationFailed(
            f"These are neither condition keys nor columns of the log: {', '.join(unknown)}."
        )
    return value
