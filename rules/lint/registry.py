"""The registry of checks and of the kinds of findings.

A check is a function that gets one node and yields problems. Files in ``rules/lint/checks`` declare the kinds
of findings, each with its checks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from time import thread_time
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, TypeVar

from rules.language import CachingDefaults
from rules.lint.finding import Finding, Severity
from rules.lint.spelling import Suggester
from tenantadmin.lib.core.serving import check_work

if TYPE_CHECKING:
    from rules.json_text import Path


class Node(Protocol):
    """A part of a document.

    Attributes:
        names: what it has, by which `FindingKind.check` selects checks.
    """

    @property
    def names(self) -> Iterable[str]: ...


AnyNode = TypeVar("AnyNode", bound=Node)

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
        self, node_type: type[AnyNode], *, names: Iterable[str] = ()
    ) -> Callable[
        [Callable[[AnyNode, Context], Iterable[Problem]]], Callable[[AnyNode, Context], Iterable[Problem]]
    ]:
        """Register a check of this kind for one type of node.

        ``names``: the check is called only for nodes with one of these ``names``.
        """

        def register(
            function: Callable[[AnyNode, Context], Iterable[Problem]],
        ) -> Callable[[AnyNode, Context], Iterable[Problem]]:
            _CHECKS.setdefault(node_type, []).append(((self, function), frozenset(names)))
            _NAMES.update(names)
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


_Check: TypeAlias = "tuple[FindingKind, Callable[[Any, Context], Iterable[Problem]]]"

#: The checks of each type of node, with the names that each is for, if not for all.
_CHECKS: Final[dict[type, list[tuple[_Check, frozenset[str]]]]] = {}
#: All these names.
_NAMES: Final[set[str]] = set()
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


def select_checks(node: Node) -> list[_Check]:
    """Return the checks to run for a node, in the order of their declaration, at least one."""
    # Most checks are about something that most nodes lack. Many nodes of a document have the same names.
    return _select(type(node), frozenset(_NAMES.intersection(node.names)))


@lru_cache(maxsize=1_000)
def _select(node_type: type[Node], names: frozenset[str]) -> list[_Check]:
    return [check for check, wanted in _CHECKS[node_type] if not wanted or wanted & names]
