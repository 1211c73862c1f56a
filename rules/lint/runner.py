"""Run all checks on a document, and sort their findings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Final, TypeAlias

from rules.json_text import is_array, is_object, name_type
from rules.language import Action, CachingDefaults, complete_rule
from rules.lint import checks, limits  # noqa: F401 - importing checks registers them
from rules.lint.finding import Finding, GrosslyMalformed, LintResult, Severity
from rules.lint.nodes import Root, RuleList, RuleNode, ValidRule, read_node, walk_conditions
from rules.lint.registry import Context, Problem, declare, select_checks
from rules.tables.warehouse import ANY_TABLES, WarehouseTables

if TYPE_CHECKING:
    from rules.json_text import JsonObject, Path
    from rules.lint.registry import FindingKind, Node

    _Hit: TypeAlias = tuple[FindingKind, Problem]


TOO_COMPLEX: Final = declare(
    "too-complex",
    Severity.ERROR,
    "The ruleset takes too long to check. Findings behind this place are missing.",
)
MORE_ERRORS: Final = declare("more-errors", Severity.ERROR, "There are more errors than a result can hold.")
WARNINGS_INCOMPLETE: Final = declare(
    "warnings-incomplete",
    Severity.WARNING,
    "The ruleset takes too long to look for all warnings. There may be more about this rule and later ones.",
)
MORE_WARNINGS: Final = declare(
    "more-warnings", Severity.WARNING, "There are more warnings than a result can hold."
)
_SPLIT: Final = (
    "Checking the ruleset takes too long from here on. Use lists of values instead of many conditions, "
    "and fewer rules."
)
#: The defaults where the tenant is not known.
ANY_TENANT: Final = CachingDefaults()
_MORE: Final = {Severity.ERROR: MORE_ERRORS, Severity.WARNING: MORE_WARNINGS}


def lint_ruleset(
    document: object, *, caching: CachingDefaults = ANY_TENANT, tables: WarehouseTables = ANY_TABLES
) -> LintResult:
    """Return the errors and warnings of a ruleset, in document order, at most `limits.MAX_FINDINGS` of each.

    ``document`` is parsed JSON: ``{rules: [...]}``, with or without the read-only properties. It uses at most
    a second of processor time for 1 MiB. If that is not enough, a finding says what was not checked.
    ``caching`` are the defaults of the tenant, where it is known.

    ``tables`` is what the configuration of the tenant says of its tables, where it is known.

    Raises:
        GrosslyMalformed: the document is not an object, or its ``rules`` are not an array.
    """
    if not is_object(document):
        raise GrosslyMalformed("", f"A ruleset must be an object, not {name_type(document)}.")
    if not is_array(rules := document.get("rules")):
        actual = name_type(rules) if "rules" in document else "absent"
        raise GrosslyMalformed("/rules", f"The rules of a ruleset must be an array; they are {actual}.")
    lint = _Lint(document, rules, caching, tables)
    errors, warnings = (lint.findings(severity) for severity in (Severity.ERROR, Severity.WARNING))
    normalized = (
        None
        if errors
        else tuple(complete_rule(node.fields, ttl_seconds=caching.ttl_seconds) for node in lint.nodes)
    )
    return LintResult(errors, warnings, normalized)


class _Lint:
    """Runs all checks on a document: first the form of each rule, then the meaning of the valid ones."""

    def __init__(
        self,
        document: JsonObject,
        rules: Sequence[object],
        caching: CachingDefaults,
        tables: WarehouseTables,
    ) -> None:
        self._document, self._tables = document, tables
        self._context = Context(caching)
        self._hits: dict[Severity, list[_Hit]] = {severity: [] for severity in Severity}
        self._counts: Counter[Severity | FindingKind] = Counter()
        self.nodes: list[RuleNode] = []
        self._run(Root(document))
        valid = self._check_meaning(self._check_form(rules))
        self._run(RuleList(tuple(self.nodes), tuple(valid), self._tables))
        if self._context.incomplete:
            self._add(WARNINGS_INCOMPLETE, Problem(min(self._context.incomplete), _SPLIT))

    def _check_form(self, rules: Sequence[object]) -> list[tuple[RuleNode, bool]]:
        """Check each rule. Return those whose conditions have no errors, and whether they are small."""
        correct = []
        for index, value in enumerate(rules):
            node = read_node(value, index, ttl_seconds=self._context.caching.ttl_seconds)
            self.nodes.append(node)
            self._run(node)
            errors_before = self._counts[Severity.ERROR]
            parts = 0
            for part in walk_conditions(node):
                if self._context.has_used(limits.ERRORS_SECONDS):
                    break
                self._run(part)
                parts += 1
            if self._context.has_used(limits.ERRORS_SECONDS):
                self._add(TOO_COMPLEX, Problem(node.path, _SPLIT))
                break
            if (
                self._counts[Severity.ERROR] == errors_before
                and is_object(node.value)
                and is_object(node.fields.get("conditions", {}))
            ):
                correct.append((node, parts <= limits.MAX_PARTS))
        return correct

    def _check_meaning(self, correct: Sequence[tuple[RuleNode, bool]]) -> list[ValidRule]:
        """Check what the conditions of correct rules mean; return the rules for which there was time."""
        valid = []
        for node, is_small in correct:
            if is_small and not self._context.has_used(limits.WARNINGS_SECONDS):
                rule = ValidRule(node)
                valid.append(rule)
                self._run(rule)
            elif node.action is Action.DENY or (self._tables.per_user and node.is_shared):
                # It may be unconditional, or share the rows of one user: both are errors.
                self._add(TOO_COMPLEX, Problem(node.path, _SPLIT))
            else:
                self._context.incomplete.append(node.path)
        return valid

    def _run(self, node: Node) -> None:
        for kind, check in select_checks(node):
            for problem in check(node, self._context):
                self._add(kind, problem)

    def _add(self, kind: FindingKind, problem: Problem) -> None:
        self._counts.update((kind.severity, kind))
        # A check goes through the document in order: what it finds later can only be counted.
        if self._counts[kind] <= limits.MAX_FINDINGS:
            self._hits[kind.severity].append((kind, problem))

    def findings(self, severity: Severity) -> tuple[Finding, ...]:
        """Return the findings in document order. Those at the same place stay in the order of the checks."""
        positions = _Positions(self._document)
        ordered = sorted(
            ((positions.find(problem.path), kind, problem) for kind, problem in self._hits[severity]),
            key=itemgetter(0),
        )
        findings = [self._make_finding(kind, problem) for _, kind, problem in ordered[: limits.MAX_FINDINGS]]
        if (count := self._counts[severity]) > limits.MAX_FINDINGS:
            message = f"Only the first {limits.MAX_FINDINGS:,} of {count:,} {severity.value}s are listed."
            findings.append(self._make_finding(_MORE[severity], Problem((), message)))
        return tuple(findings)

    def _make_finding(self, kind: FindingKind, problem: Problem) -> Finding:
        match problem.path:
            case ("rules", int(index), *_):
                return kind.make_finding(problem, self.nodes[index].id)
        return kind.make_finding(problem, None)


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
