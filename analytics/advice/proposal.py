"""A proposed change of a ruleset, what it is made of, and the data that proposals are made from."""

# Queries consist of constants, days, numbers and quoted names.
# ruff: noqa: S608

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec
from msgspec import UNSET, UnsetType

from analytics.replay.result import EvidenceQuery
from logs.definitions import BLOCKED, ERROR, HIT, REQUEST, WAREHOUSE_TIME, Statuses
from logs.quoting import quote_text
from rules.conditions import compile_sql, parse_conditions
from rules.diff import StoredRule
from rules.language import Action, complete_rule, read_rules
from rules.lint import lint_ruleset
from rules.tables.warehouse import ANY_TABLES, WarehouseTables
from tenantadmin.lib.core.structs import JsonStruct

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from analytics.advice.estimate import Requests, Series, Write
    from analytics.advice.measure import Move, SuspendChange
    from analytics.replay.play import Lifetime
    from rules.language import Rule
    from rules.tables.names import TableName

_MAX_SLUG: Final = 60
_NOT_IN_SLUG: Final = re.compile(r"[^a-z0-9]+")


class RuleEdit(JsonStruct):
    """A change of the rules: a rule is added before another one (null: at the end), replaced or moved."""

    op: Literal["insert", "replace", "remove", "move"]
    rule_id: str
    before: str | UnsetType | None = UNSET
    rule: StoredRule | None = None

    @classmethod
    def insert(cls, rule: Mapping[str, Any], *, before: str | None = None) -> RuleEdit:
        """Add a rule before the rule ``before``, or at the end."""
        return cls(op="insert", rule_id=rule["id"], before=before, rule=rule)

    @classmethod
    def replace(cls, rule: Mapping[str, Any]) -> RuleEdit:
        """Replace the rule that has the same id."""
        return cls(op="replace", rule_id=rule["id"], rule=rule)

    @classmethod
    def remove(cls, rule_id: str) -> RuleEdit:
        return cls(op="remove", rule_id=rule_id)

    @classmethod
    def move(cls, rule_id: str, *, before: str) -> RuleEdit:
        return cls(op="move", rule_id=rule_id, before=before)

    def apply(self, rules: list[Mapping[str, Any]]) -> None:
        """Change ``rules``. They have the rules that the edit names."""
        index, rule = len(rules), self.rule
        if self.op != "insert":
            index = _find(rules, self.rule_id)
            rule = rule or rules[index]
            del rules[index]
        if rule is None or self.op == "remove":
            return
        if isinstance(self.before, str):
            index = _find(rules, self.before)
        rules.insert(index, rule)


def apply_edits(rules: Iterable[Mapping[str, Any]], edits: Iterable[RuleEdit]) -> list[Mapping[str, Any]]:
    """Return the rules after the edits. Every rule that an edit names must exist."""
    changed = list(rules)
    for edit in edits:
        edit.apply(changed)
    return changed


def read_edits(patch: Sequence[Mapping[str, Any]]) -> list[RuleEdit]:
    """Read edits from their JSON."""
    return msgspec.convert(patch, list[RuleEdit])


def _find(rules: Sequence[Mapping[str, Any]], rule_id: str) -> int:
    return next(index for index, rule in enumerate(rules) if rule["id"] == rule_id)


def new_rule_id(text: str, taken: Collection[str]) -> str:
    """Return an id like ``cache-marketing`` that is not in ``taken``."""
    slug = _NOT_IN_SLUG.sub("-", text.lower()).strip("-")[:_MAX_SLUG].rstrip("-") or "rule"
    names = [slug, *(f"{slug}-{number}" for number in range(2, len(taken) + 3))]
    return next(name for name in names if name not in taken)


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

    @property
    def least_ms(self) -> float:
        """The least warehouse time (ms) that a proposal must save."""
        return max(MIN_SHARE * self.warehouse_ms, 1)

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


def statements_evidence(days: str, conditions: Mapping[str, Any], *, where: str) -> EvidenceQuery:
    """Select the statements that match the conditions and ``where``, the most warehouse time first."""
    return EvidenceQuery(
        name="statements",
        sql=f"SELECT standardizedSql, count(*) FILTER ({REQUEST}) AS requests,"
        f" count(DISTINCT parameterValues) AS differentValues, count(*) FILTER ({HIT}) AS hits,"
        f" {WAREHOUSE_TIME} AS warehouseMs"
        f" FROM proxy_logs WHERE {days} AND {where} AND {compile_sql(conditions)}"
        " GROUP BY standardizedSql ORDER BY warehouseMs DESC NULLS LAST, standardizedSql LIMIT 20",
    )


def changes_evidence(days: str, tables: Sequence[str]) -> EvidenceQuery:
    """Select the statements that changed one of the tables."""
    condition = compile_sql({"tables": {"containsAny": list(tables)}})
    return EvidenceQuery(
        name="changes",
        sql=f"SELECT standardizedSql, count(*) AS runs FROM proxy_logs WHERE {days}"
        f" AND (isDataChange OR isDDL) AND {condition}"
        f" AND {Statuses(*BLOCKED, *ERROR).not_of('cacheStatus')}"
        " GROUP BY standardizedSql ORDER BY runs DESC, standardizedSql LIMIT 20",
    )


def rule_evidence(days: str, rule_id: str) -> EvidenceQuery:
    """Count the log entries that a rule decided, by cache status."""
    return EvidenceQuery(
        name="statuses",
        sql="SELECT cacheStatus, missReason, count(*) AS entries,"
        f" {WAREHOUSE_TIME} AS warehouseMs"
        f" FROM proxy_logs WHERE {days} AND matchedRule = {quote_text(rule_id)}"
        " GROUP BY cacheStatus, missReason ORDER BY entries DESC, cacheStatus, missReason",
    )


#: The most names in one list of a condition.
MAX_TABLES: Final = 50


class Invalidator:
    """A rule that fires when tables change: a new one, or an existing one that gets one more target.

    Attributes:
        is_new: the rule must be added.
        times: the sorted times (epoch ms) at which it would have fired in the log.
        tables: a change of these tables fires it. Named as in the log.
    """

    def __init__(self, current: Current, writes: Sequence[Write], tables: frozenset[TableName]) -> None:
        conditions = _write_conditions(current, writes, tables)
        self.tables: Sequence[str] = conditions["tables"]["containsAny"]
        condition = parse_conditions(conditions)
        self._conditions = conditions
        self._current = current
        self._existing = next(
            (
                rule.id
                for rule in current.rules
                if rule.enabled and rule.invalidate_rules and dict(rule.conditions) == conditions
            ),
            None,
        )
        self.is_new = self._existing is None
        writes_of_it = (write for write in current.requests.writes if write.statement.fits(condition))
        self.times = sorted({at for write in writes_of_it for at in write.times})

    def edit(self, target: str, *, name: str, taken: Collection[str] = ()) -> RuleEdit:
        """Return the edit that makes the rule ``target`` one of its targets."""
        for document in self._current.documents:
            if document["id"] == self._existing:
                targets = [*document["invalidateRules"], target]
                return RuleEdit.replace({**document, "invalidateRules": targets})
        rule_id = new_rule_id(f"{target}-changes", {*self._current.ids, *taken})
        return RuleEdit.insert(
            complete_rule(
                {
                    "id": rule_id,
                    "name": name,
                    "conditions": self._conditions,
                    "invalidateRules": [target],
                }
            )
        )


def split_rule(
    current: Current, index: int, part: Mapping[str, Any], *, part_id: str, name: str, vary_by: Sequence[str]
) -> list[RuleEdit]:
    """Return edits that move the requests of a rule which match ``part`` to a new rule before it.

    Rules that invalidate the old rule then invalidate the new one too.
    """
    document = current.documents[index]
    new = {
        **document,
        "id": part_id,
        "name": name[:200],
        "varyBy": list(vary_by),
        "conditions": {"all": [document["conditions"], part]},
    }
    return [
        RuleEdit.insert(complete_rule(new), before=document["id"]),
        *(
            RuleEdit.replace({**other, "invalidateRules": [*other["invalidateRules"], part_id]})
            for other in current.documents
            if document["id"] in other.get("invalidateRules", ())
        ),
    ]


def _write_conditions(
    current: Current, writes: Sequence[Write], tables: frozenset[TableName]
) -> dict[str, Any]:
    """Return conditions that match these writes to the tables, with the names that the writes use."""
    names = current.requests.spell((write.statement for write in writes), tables)
    conditions: dict[str, Any] = {"isDataChange": True, "tables": {"containsAny": names[:MAX_TABLES]}}
    if any(write.statement.request["isDataChange"] is not True for write in writes):
        del conditions["isDataChange"]
        conditions = {"any": [{"isDataChange": True}, {"isDDL": True}], **conditions}
    return conditions
