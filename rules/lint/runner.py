"""Run all checks on a document, and sort their findings."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Final, TypeAlias

from rules.json_text import is_array, is_object, name_type
from rules.language import complete_rule
from rules.lint import checks  # noqa: F401 - importing registers every check
from rules.lint.finding import Finding, GrosslyMalformed, LintResult, Severity
from rules.lint.nodes import Root, RuleList, RuleNode, ValidRule, read_node, walk_conditions
from rules.lint.registry import Context, run_checks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rules.json_text import JsonObject, Path
    from rules.lint.registry import FindingKind, Problem

    _Hit: TypeAlias = tuple[FindingKind, Problem]


#: Maximum number of findings of one severity. Without it, a hostile document could have an answer of a
#: hundred times its own size.
MAX_FINDINGS: Final = 50_000


def lint_ruleset(document: object) -> LintResult:
    """Return all errors and warnings of a ruleset.

    ``document`` is parsed JSON: ``{rules: [...]}``, with or without the read-only properties. The time grows
    linearly with the size of the document.

    Raises:
        GrosslyMalformed: the document is not an object, or its ``rules`` are not an array.
    """
    if not is_object(document):
        raise GrosslyMalformed("", f"A ruleset must be an object, not {name_type(document)}.")
    if not is_array(rules := document.get("rules")):
        actual = name_type(rules) if "rules" in document else "absent"
        raise GrosslyMalformed("/rules", f"The rules of a ruleset must be an array; they are {actual}.")
    nodes = tuple(read_node(rule, index) for index, rule in enumerate(rules))
    hits_by_severity = _collect(document, nodes)
    errors, warnings = (
        _sort(document, nodes, hits_by_severity[severity]) for severity in (Severity.ERROR, Severity.WARNING)
    )
    normalized = None if errors else tuple(complete_rule(node.fields) for node in nodes)
    return LintResult(errors, warnings, normalized)


def _collect(document: JsonObject, nodes: tuple[RuleNode, ...]) -> dict[Severity, list[_Hit]]:
    context = Context()
    all_hits: dict[Severity, list[_Hit]] = {severity: [] for severity in Severity}
    errors = all_hits[Severity.ERROR]
    _add(all_hits, run_checks(Root(document), context))
    valid: list[ValidRule] = []
    for node in nodes:
        _add(all_hits, run_checks(node, context))
        before = len(errors)
        for part in walk_conditions(node):
            _add(all_hits, run_checks(part, context))
        if len(errors) >= MAX_FINDINGS:
            break
        if len(errors) == before and is_object(node.value) and is_object(node.fields.get("conditions", {})):
            rule = ValidRule(node)
            valid.append(rule)
            _add(all_hits, run_checks(rule, context))
    _add(all_hits, run_checks(RuleList(nodes, tuple(valid)), context))
    return all_hits


def _add(all_hits: dict[Severity, list[_Hit]], hits: list[_Hit]) -> None:
    for hit in hits:
        hits_of_severity = all_hits[hit[0].severity]
        if len(hits_of_severity) < MAX_FINDINGS:
            hits_of_severity.append(hit)


def _sort(document: JsonObject, nodes: Sequence[RuleNode], hits: list[_Hit]) -> tuple[Finding, ...]:
    """Sort findings in document order. Findings at the same place stay in the order of the checks."""
    positions = _Positions(document)
    ordered = sorted(
        ((positions.find(problem.path), kind, problem) for kind, problem in hits), key=itemgetter(0)
    )
    return tuple(kind.make_finding(problem, _rule_id(nodes, problem.path)) for _, kind, problem in ordered)


def _rule_id(nodes: Sequence[RuleNode], path: Path) -> str | None:
    index = path[1] if len(path) > 1 and path[0] == "rules" else None
    return nodes[index].id if isinstance(index, int) else None


class _Positions:
    """The positions of paths in a document, for sorting."""

    def __init__(self, document: JsonObject) -> None:
        self._document = document
        self._members: dict[int, dict[str, int]] = {}

    def find(self, path: Path) -> tuple[int, ...]:
        """Return the index at each level of a path. A missing property comes before all others."""
        value: object = self._document
        position: list[int] = []
        for token in path:
            if is_object(value):
                position.append(self._members_of(value).get(str(token), -1))
                value = value.get(str(token))
            elif is_array(value) and isinstance(token, int):
                position.append(token)
                value = value[token]
        return tuple(position)

    def _members_of(self, value: JsonObject) -> dict[str, int]:
        # Ids stay unique, because the document exists as long as this object.
        members = self._members.get(id(value))
        if members is None:
            members = self._members[id(value)] = {name: index for index, name in enumerate(value)}
        return members
