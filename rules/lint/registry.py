"""The registry of checks and of the kinds of findings.

A check is a function that gets one node and yields problems. Each file in ``rules/lint/checks`` declares one
kind of finding, and has its checks.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from time import thread_time
from typing import TYPE_CHECKING, Any, Final, TypeVar

from rules.language import CachingDefaults
from rules.lint.finding import Finding, Severity
from rules.lint.suggest import Suggester
from tenantadmin.lib.core.work import check_work

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from rules.json_text import Path

Node = TypeVar("Node")

#: Reading the clock takes microseconds.
_QUESTIONS_PER_READING: Final = 20


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem that a check found. For the attributes, see :class:`Finding`."""

    path: Path
    message: str
    suggestion: str | None = None
    subject: str | None = None
    caused_by: str | None = None


@dataclass(slots=True)
class Context:
    """State that the checks of one lint share.

    Attributes:
        caching: the defaults of the tenant.
        patterns: by pattern and ignore_case, why a pattern does not compile, or None.
        compiled_size: the sum of the sizes of all compiled patterns.
        incomplete: the paths of rules that a check for warnings did not look at, for lack of time.
    """

    caching: CachingDefaults = field(default_factory=CachingDefaults)
    suggester: Suggester = field(default_factory=Suggester)
    patterns: dict[tuple[str, bool], str | None] = field(default_factory=dict)
    compiled_size: int = 0
    incomplete: list[Path] = field(default_factory=list)
    _started: float = field(default_factory=thread_time)
    _used: float = 0.0
    _questions: int = 0

    def has_used(self, seconds: float) -> bool:
        """Return True if this lint has used more than ``seconds`` of processor time.

        The clock is read only at every `_QUESTIONS_PER_READING`th call, because a reading is slow.
        """
        if self._questions % _QUESTIONS_PER_READING == 0:
            self._used = thread_time() - self._started
            check_work()
        self._questions += 1
        return self._used > seconds


@dataclass(frozen=True, slots=True)
class FindingKind:
    """One kind of finding. docs/rules.md has the same ``meaning``; a test compares both.

    ``hurts``: publishing such a rule may give wrong results, or those of another user.
    """

    code: str
    severity: Severity
    meaning: str
    hurts: bool = False

    def check(
        self, node_type: type[Node]
    ) -> Callable[
        [Callable[[Node, Context], Iterable[Problem]]], Callable[[Node, Context], Iterable[Problem]]
    ]:
        """Register a check of this kind for one type of node."""

        def register(
            function: Callable[[Node, Context], Iterable[Problem]],
        ) -> Callable[[Node, Context], Iterable[Problem]]:
            _CHECKS.setdefault(node_type, []).append((self, function))
            return function

        return register

    def make_finding(self, problem: Problem, rule_id: str | None) -> Finding:
        """Return a finding of this kind for a problem."""
        return Finding(
            code=self.code,
            severity=self.severity,
            hurts=self.hurts,
            rule_id=rule_id,
            path=problem.path,
            message=problem.message,
            suggestion=problem.suggestion,
            subject=problem.subject,
            caused_by=problem.caused_by,
        )


_CHECKS: Final[dict[type, list[tuple[FindingKind, Callable[[Any, Context], Iterable[Problem]]]]]] = {}
FINDING_KINDS: Final[dict[str, FindingKind]] = {}


def declare(code: str, severity: Severity, meaning: str, *, hurts: bool = False) -> FindingKind:
    """Declare a kind of finding.

    Raises:
        ValueError: the code is declared already.
    """
    if code in FINDING_KINDS:
        raise ValueError(f"the finding {code} is declared twice")
    FINDING_KINDS[code] = FindingKind(code, severity, meaning, hurts)
    return FINDING_KINDS[code]


def run_checks(node: object, context: Context) -> list[tuple[FindingKind, Problem]]:
    """Run every check that is registered for the node's type. Each type has at least one."""
    return [(kind, problem) for kind, function in _CHECKS[type(node)] for problem in function(node, context)]
