"""A proposed change of a ruleset, and the data that proposals are made from."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from analytics.advice.edits import apply_edits
from rules.language import Action, read_rules
from rules.lint import lint_ruleset
from rules.tables.warehouse import ANY_TABLES, WarehouseTables

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from datetime import date

    from duckdb import DuckDBPyConnection

    from analytics.advice.awake import Move
    from analytics.advice.edits import RuleEdit
    from analytics.advice.measure import SuspendChange
    from analytics.advice.requests import Requests, Series
    from analytics.replay.chain import Lifetime
    from analytics.replay.evidence import EvidenceQuery
    from rules.language import Rule

#: The largest share of a rule's hits that may be at risk of being stale.
RISK_CAP: Final = 0.01
#: The smallest share of warehouse time that a proposal must save.
MIN_SHARE: Final = 0.002
#: The lifetimes that are tried, in seconds.
TTLS: Final = (60, 300, 900, 3600, 14_400, 43_200, 86_400)


class Variant(StrEnum):
    """The ways to change the rules for one end. docs/advice.md describes each."""

    SHARED = "shared"
    PER_USER = "per-user"
    VARY = "vary"
    BYPASS = "bypass"
    NARROWER = "narrower"
    SCHEDULE = "schedule"


class Kind(StrEnum):
    """The kinds of recommendations. docs/advice.md describes each."""

    CACHE = "cache"
    INVALIDATOR = "invalidator"
    TTL = "ttl"
    SPLIT = "split"
    SWR = "swr"
    BYPASS = "bypass"
    REORDER = "reorder"
    REMOVE = "remove"
    LEAK_FIX = "leak-fix"
    LET_IT_SLEEP = "let-it-sleep"
    AUTO_SUSPEND = "auto-suspend"


#: What makes results right, whatever it costs.
REPAIRS: Final = (Kind.LEAK_FIX, Kind.INVALIDATOR, Kind.SPLIT)


@dataclass(frozen=True)
class Proposal:
    """One change.

    Attributes:
        subject: tables, a statement or the id of a rule. Kind and subject identify a proposal.
        why: the reasons, one sentence each.
        estimate: the estimated saving of warehouse time (ms); 0 for proposals that repair.
        variant: how it serves its end, if there is another way.
        caveats: codes of what the log cannot show.
        others: the other ways. Each is replayed too.
        move: the executions to run in another minute. Then there are no edits.
        suspend: another time until the warehouse suspends. Then there are no edits.
    """

    kind: Kind
    subject: str
    title: str
    why: tuple[str, ...]
    edits: tuple[RuleEdit, ...]
    evidence: tuple[EvidenceQuery, ...]
    estimate: int = 0
    variant: Variant | None = None
    caveats: tuple[str, ...] = ()
    others: tuple[Proposal, ...] = ()
    move: Move | None = None
    suspend: SuspendChange | None = None

    @property
    def fingerprint(self) -> str:
        return hashlib.sha256(f"{self.kind}\0{self.subject}".encode()).hexdigest()[:32]


@dataclass(frozen=True)
class Current:
    """The current ruleset and its effect on the log.

    Attributes:
        documents: the rules as they are stored.
        lifetimes: by the index of the rule, with the rule's markers in the log.
        risk: by rule id, the low and the high count of hits at risk, and the count of all hits.
        warehouse_ms: the warehouse time in the window under these rules.
        tables: what the tenant and its log say of its tables.
    """

    connection: DuckDBPyConnection
    documents: Sequence[Mapping[str, Any]]
    rules: tuple[Rule, ...]
    lifetimes: Sequence[Lifetime]
    requests: Requests
    risk: Mapping[str, tuple[int, int, int]]
    warehouse_ms: int
    first_day: date
    last_day: date
    tables: WarehouseTables = ANY_TABLES

    @property
    def ids(self) -> Collection[str]:
        return {rule.id for rule in self.rules}

    @property
    def days(self) -> str:
        """The SQL condition that selects the days of the window."""
        return f"day BETWEEN '{self.first_day}' AND '{self.last_day}'"

    def series_of(self, index: int) -> Sequence[Series]:
        """Return the cacheable requests that the rule with this index decides."""
        return self.requests.by_rule.get(index, ())

    def cache_rules(self) -> list[tuple[int, Rule]]:
        """Return the enabled cache rules with their indexes."""
        return [
            (index, rule)
            for index, rule in enumerate(self.rules)
            if rule.enabled and rule.action is Action.CACHE
        ]

    @cached_property
    def _warnings(self) -> set[tuple[str, str | None]]:
        result = lint_ruleset({"rules": list(self.documents)}, tables=self.tables)
        return {(finding.code, finding.rule_id) for finding in result.warnings}

    def is_clean(self, edits: Sequence[RuleEdit]) -> bool:
        """Return True if lint finds no error and no new warning after the edits."""
        result = lint_ruleset({"rules": apply_edits(self.documents, edits)}, tables=self.tables)
        return result.valid and not any(
            (finding.code, finding.rule_id) not in self._warnings for finding in result.warnings
        )

    def after(self, edits: Sequence[RuleEdit]) -> tuple[Rule, ...]:
        return read_rules(apply_edits(self.documents, edits))


def is_within_cap(risk: int, hits: int) -> bool:
    return risk <= RISK_CAP * hits


def describe_seconds(seconds: int) -> str:
    """Return a readable duration, such as "12 hours"."""
    for unit, size in (("day", 86_400), ("hour", 3600), ("minute", 60)):
        if seconds >= size and seconds % size == 0:
            count = seconds // size
            return f"{count} {unit}{'s' if count > 1 else ''}"
    return f"{seconds} seconds"
