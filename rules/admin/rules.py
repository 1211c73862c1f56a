"""Check, compare and rebase rules that staff edit as text."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from accounts.models.history import RevisionKind
from accounts.revisions import DocumentHistory, read_pair
from rules.admin.json_lines import FaultyText, line_of, parse_text
from rules.diff import diff_rules
from rules.language import complete_rule
from rules.lint import GrosslyMalformed, lint_deletions, lint_write, report_lint
from rules.markers import active_marker_targets
from rules.ruleset import read_ruleset, with_log
from rules.wording import say
from tenantadmin.lib.core.errors import ValidationFailed
from tenantadmin.lib.http.difference import diff_texts

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from uuid import UUID

    from rules.diff import RulesDiff

_FIRST: Final = ("id", "name", "description", "enabled", "action", "conditions", "ttlSeconds")
#: The lint code of removed rules that a writer may confirm.
CONFIRMED_CODE: Final = "rule-removed-active-marker"


def rules_text(rules: Sequence[Any]) -> str:
    """Return the text of rules for the editor. The database keeps the order of properties only in drafts."""
    return written_text([_in_order(rule) if isinstance(rule, dict) else rule for rule in rules])


def written_text(rules: Sequence[Any]) -> str:
    """Return the text of rules for the editor, with properties in the order of the writer."""
    return json.dumps(rules, indent=2, ensure_ascii=False)


def _in_order(rule: dict[str, Any]) -> dict[str, Any]:
    """Return a rule with its properties in a fixed order: names, action, then the rest."""
    names = [*(name for name in _FIRST if name in rule), *sorted(rule.keys() - set(_FIRST))]
    return {name: json.loads(json.dumps(rule[name], sort_keys=True)) for name in names}


def parse_rules(text: str) -> list[Any]:
    """Return the array of rules in the editor's text.

    Raises:
        ValidationFailed: the text is faulty, or no array. The message names the line.
    """
    rules, _ = parse_text(text)
    if not isinstance(rules, list):
        raise ValidationFailed("The rules must be an array: [ … ].")
    return rules


@dataclass(frozen=True, slots=True)
class LineFinding:
    """A finding at a line (from 0) of the editor."""

    line: int
    severity: str
    code: str
    text: str
    rule_id: str | None = None
    #: The name of the rule, or its id.
    rule: str | None = None

    def as_json(self) -> dict[str, Any]:
        return {"row": self.line, "type": self.severity, "text": f"{self.code}: {self.text}"}


@dataclass(frozen=True, slots=True)
class TextCheck:
    """The findings of lint for a text, and the diff that saving it would make."""

    marks: Sequence[LineFinding]
    #: Removed rules: names by id of those that the user must confirm, and ids that the user has confirmed.
    to_confirm: Mapping[str, str] = field(default_factory=dict)
    confirmed: Collection[str] = ()
    diff: RulesDiff | None = None
    #: None if the text holds no rules to compare.
    lines: Sequence[tuple[str, str]] | None = ()

    @property
    def blocking(self) -> int:
        """The number of errors that cannot be confirmed."""
        return sum(mark.severity == "error" and mark.code != CONFIRMED_CODE for mark in self.marks)


def check_text(tenant_id: UUID, text: str, *, confirmed: Collection[str] = ()) -> TextCheck:
    """Lint the editor's text as a write would, and compare it with the live rules.

    Raises:
        TenantNotFound: there is no such live tenant.
    """
    stored = read_ruleset(tenant_id)
    try:
        rules, places = parse_text(text)
    except FaultyText as error:
        return TextCheck([LineFinding(error.line, "error", "json", str(error))], lines=None)
    targets = active_marker_targets(tenant_id)
    try:
        result = lint_write(
            {"rules": rules},
            stored_rules=stored.rules,
            active_marker_targets=targets,
            confirmed=confirmed,
            caching=stored.caching,
            tables=with_log(stored.tables, tenant_id),
        )
    except GrosslyMalformed as error:
        return TextCheck([LineFinding(0, "error", "wrong-type", str(error))], lines=None)
    report = report_lint(result)
    findings = [*report.errors, *report.warnings]
    names = name_rules([*stored.rules, *rules])
    marks = [
        LineFinding(
            line=line_of(places, finding.path.removeprefix("/rules")),
            severity=finding.severity,
            code=finding.code,
            text=say(finding.message),
            rule_id=finding.rule_id,
            rule=names.get(finding.rule_id or "", finding.rule_id),
        )
        for finding in findings
    ]
    removals = lint_deletions(
        stored_rules=stored.rules, new_rules=rules, active_marker_targets=targets, confirmed=()
    )
    to_confirm = {
        it.rule_id: names[it.rule_id] for it in removals if it.code == CONFIRMED_CODE and it.rule_id
    }
    after = result.normalized
    return TextCheck(
        marks,
        to_confirm,
        confirmed,
        None if after is None else diff_rules(before=stored.rules, after=after),
        diff_lines(stored.rules, rules if after is None else after),
    )


def diff_lines(before: Sequence[Any], after: Sequence[Any]) -> list[tuple[str, str]]:
    """Return the lines of a diff of two rulesets, as `diff_texts` does."""
    return diff_texts(rules_text(before), rules_text(after))


@dataclass(frozen=True, slots=True)
class ThreeWay:
    """The changes of others since the text's base, the changes of the text, and rules that both changed."""

    theirs: Sequence[tuple[str, str]]
    mine: Sequence[tuple[str, str]]
    both: Sequence[str]
    current_seq: int
    etag: str


def compare_three(tenant_id: UUID, *, base_seq: int, rules: Sequence[Any]) -> ThreeWay:
    """Compare a text with the revision that it began from and with the live rules.

    Raises:
        TenantNotFound, RevisionNotFound: there is no such live tenant or revision.
    """
    current = read_ruleset(tenant_id)
    before = _rules_at(tenant_id, base_seq)
    return ThreeWay(
        theirs=diff_lines(before, current.rules),
        mine=diff_lines(before, rules),
        both=sorted(_changed(before, current.rules) & _changed(before, rules)),
        current_seq=current.seq,
        etag=current.etag,
    )


def rebase_draft(tenant_id: UUID, *, base_seq: int, rules: Sequence[Any]) -> list[dict[str, Any]]:
    """Apply the changes that valid ``rules`` make to their base revision to the live rules.

    Raises:
        TenantNotFound, RevisionNotFound: there is no such live tenant or revision.
    """
    return rebase_rules(_rules_at(tenant_id, base_seq), rules, read_ruleset(tenant_id).rules)


def _rules_at(tenant_id: UUID, seq: int) -> list[Any]:
    """Return the rules of a revision."""
    document, _ = read_pair(DocumentHistory(RevisionKind.RULES, tenant_id), earlier=seq, later=seq)
    rules: list[Any] = document.get("rules", [])
    return rules


def rebase_rules(
    base: Sequence[Any], mine: Sequence[dict[str, Any]], theirs: Sequence[Any]
) -> list[dict[str, Any]]:
    """Apply the changes from ``base`` to ``mine`` to the live rules ``theirs``. All rules must be valid.

    A rule that both sides changed is taken from ``mine``. Rules keep the order of ``theirs``, unless ``mine``
    reordered them. A rule that only one side has stays behind the rule before it on that side.
    """
    before, own, live = (_by_id([complete_rule(rule) for rule in side]) for side in (base, mine, theirs))
    first, second = live, own
    if [rule_id for rule_id in own if rule_id in before] != [rule_id for rule_id in before if rule_id in own]:
        first, second = own, live
    order = list(first)
    place = 0
    for rule_id in second:
        if rule_id not in first:
            order.insert(place, rule_id)
        place = order.index(rule_id) + 1
    merged = {
        rule_id: (live if own.get(rule_id) == before.get(rule_id) else own).get(rule_id) for rule_id in order
    }
    return [rule for rule in merged.values() if rule is not None]


def _changed(before: Sequence[Any], after: Sequence[Any]) -> set[str]:
    """Return the ids of the rules that differ."""
    old, new = _by_id(before), _by_id(after)
    return {rule_id for rule_id in old.keys() | new.keys() if old.get(rule_id) != new.get(rule_id)}


def name_rules(rules: Iterable[Any]) -> dict[str, str]:
    """Return the names of rules by id. A rule without a name has its id."""
    named = (rule for rule in rules if isinstance(rule, dict) and isinstance(rule.get("id"), str))
    return {rule["id"]: str(rule.get("name") or rule["id"]) for rule in named}


def _by_id(rules: Sequence[Any]) -> dict[str, Any]:
    return {str(rule.get("id")): rule for rule in rules if isinstance(rule, dict)}
