"""Run all checks over a document and put their findings in order."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Final, TypeAlias

from rules.json_text import is_array, is_object, name_type
from rules.language import complete_rule
from rules.lint import checks  # noqa: F401 - importing registers every check
from rules.lint.finding import Finding, GrosslyMalformed, LintResult, Severity
from rules.lint.nodes import Document, RuleNode, Ruleset, SoundRule, read_node, walk_conditions
from rules.lint.registry import Context, run_checks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rules.json_text import JsonObject, Path
    from rules.lint.registry import FindingKind, Problem

    _Hit: TypeAlias = tuple[FindingKind, Problem]


#: Findings of one severity that are reported. Only a body made for it has more, and its answer would be
#: a hundred times its size.
MAX_FINDINGS: Final = 50_000


def lint_ruleset(document: object) -> LintResult:
    """Find everything that is wrong or odd in a ruleset, at once.

    ``document`` is parsed JSON, ``{rules: [...]}`` with or without the read-only members, which are passed
    over. The cost grows with the size of the document.

    Raises:
        GrosslyMalformed: the document is no object, or its ``rules`` are no array.
    """
    if not is_object(document):
        raise GrosslyMalformed("", f"A ruleset must be an object, not {name_type(document)}.")
    if not is_array(rules := document.get("rules")):
        found = name_type(rules) if "rules" in document else "absent"
        raise GrosslyMalformed("/rules", f"The rules of a ruleset must be an array; they are {found}.")
    nodes = tuple(read_node(rule, index) for index, rule in enumerate(rules))
    found_by_severity = _collect(document, nodes)
    errors, warnings = (
        _sort(document, nodes, found_by_severity[severity]) for severity in (Severity.ERROR, Severity.WARNING)
    )
    normalized = None if errors else tuple(complete_rule(node.fields) for node in nodes)
    return LintResult(errors, warnings, normalized)


def _collect(document: JsonObject, nodes: tuple[RuleNode, ...]) -> dict[Severity, list[_Hit]]:
    context = Context()
    found: dict[Severity, list[_Hit]] = {severity: [] for severity in Severity}
    errors = found[Severity.ERROR]
    _add(found, run_checks(Document(document), context))
    sound: list[SoundRule] = []
    for node in nodes:
        _add(found, run_checks(node, context))
        before = len(errors)
        for part in walk_conditions(node):
            _add(found, run_checks(part, context))
        if len(errors) >= MAX_FINDINGS:
            break
        if len(errors) == before and is_object(node.value) and is_object(node.fields.get("conditions", {})):
            rule = SoundRule(node)
            sound.append(rule)
            _add(found, run_checks(rule, context))
    _add(found, run_checks(Ruleset(nodes, tuple(sound)), context))
    return found


def _add(found: dict[Severity, list[_Hit]], hits: list[_Hit]) -> None:
    for hit in hits:
        hits_of_severity = found[hit[0].severity]
        if len(hits_of_severity) < MAX_FINDINGS:
            hits_of_severity.append(hit)


def _sort(document: JsonObject, nodes: Sequence[RuleNode], found: list[_Hit]) -> tuple[Finding, ...]:
    """Order findings as their places stand in the document; at one place, in the order of the checks."""
    positions = _Positions(document)
    ordered = sorted(
        ((positions.find(problem.path), kind, problem) for kind, problem in found), key=itemgetter(0)
    )
    return tuple(kind.make_finding(problem, _rule_id(nodes, problem.path)) for _, kind, problem in ordered)


def _rule_id(nodes: Sequence[RuleNode], path: Path) -> str | None:
    index = path[1] if len(path) > 1 and path[0] == "rules" else None
    return nodes[index].id if isinstance(index, int) else None


class _Positions:
    """Where things stand in a document: their index at every level."""

    def __init__(self, document: JsonObject) -> None:
        self._document = document
        self._members: dict[int, dict[str, int]] = {}

    def find(self, path: Path) -> tuple[int, ...]:
        """The indexes along a path. A member that is missing stands before all that are there."""
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
        # The document outlives this object, so that its members keep their identity.
        known = self._members.get(id(value))
        if known is None:
            known = self._members[id(value)] = {name: index for index, name in enumerate(value)}
        return known
