"""Replay a log by the definition alone, one row after the other.

It is slow, and shares with `analytics.replay` only `rules.match` and the reading of the table that a
statement changes. A row is a dictionary of ``proxy_logs`` with its ``day``; rows are in the order in which
they are stored.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from analytics.reports.sql import find_changed_tables, read_tables
from rules.language import Action, Rule
from rules.match import Decision, match
from tests.rules.tables.judge import compare, parse

Row = dict[str, Any]
DECIDABLE = {"HIT", "MISS", "BYPASS", "PASSTHROUGH", "BLOCKED", "HOLD", "ERROR", "INVALIDATION_ERROR"}
EXECUTED = {"MISS", "BYPASS", "PASSTHROUGH"}
PLACEHOLDER = re.compile(r"\?|%s|%\(\w+\)s|\$\d+|:\w+|@\w+")
STATUS_COUNTS = {
    "HIT": "hits",
    "MISS": "misses",
    "HOLD": "holds",
    "ERROR": "errors",
    "BYPASS": "bypassed",
    "BLOCKED": "blocked",
    "PASSTHROUGH": "passed",
    "INVALIDATION_ERROR": "invalidationErrors",
}


@dataclass(eq=False)
class Request:
    """A decidable row, and what the replay finds out about it."""

    row: Row
    at: int
    counted: bool
    kind: str
    identity: Hashable
    restart: int
    decision: Decision
    rule: Rule | None
    work: int
    mean: int
    vary: tuple[str | None, ...] = ()
    status: str = ""
    reason: str | None = None
    entry: Entry | None = None
    is_stale: bool = False
    is_revalidation: bool = False

    @property
    def is_failing(self) -> bool:
        return bool(self.row["cacheStatus"] == "ERROR")

    @property
    def fires(self) -> bool:
        return self.row["cacheStatus"] not in {"ERROR", "INVALIDATION_ERROR"}

    @property
    def group(self) -> tuple[Hashable, ...]:
        rule_id = self.rule.id if self.rule else None
        return rule_id, self.restart, self.vary, self.row["standardizedSql"], self.row["parameterValues"]


@dataclass(frozen=True)
class Entry:
    started: int
    born: int


@dataclass
class Judgement:
    """What a replay comes to.

    Attributes:
        counts: by rule id (None: no rule decided), every count of the definition.
        high_hits, high_saved: the upper bounds of hits and saved milliseconds, by rule id.
        positions: where the truth lies between the bounds, for each keyed group.
        merged: open requests as if those with the same statement and values were equal.
    """

    requests: list[Request]
    outside: int
    counts: dict[str | None, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    high_hits: Counter[str | None] = field(default_factory=Counter)
    high_saved: Counter[str | None] = field(default_factory=Counter)
    positions: list[float] = field(default_factory=list)
    merged: dict[Request, Request] = field(default_factory=dict)

    def total(self) -> Counter[str]:
        total: Counter[str] = Counter()
        for counts in self.counts.values():
            total.update(counts)
        return total

    @property
    def position(self) -> float | None:
        return median(self.positions) if len(self.positions) >= 3 else None


def judge(
    rows: Sequence[Row],
    *,
    rules: Sequence[Rule],
    counted: Collection[str],
    changes: Sequence[int] = (),
    markers: Sequence[tuple[str, int]] = (),
    nocache: bool = True,
    non_deterministic: bool = True,
    keys_per_user: bool = False,
    rulesets: Sequence[tuple[int, Sequence[Rule]]] = (),
    with_risk: bool = True,
) -> Judgement:
    """Replay ``rows``.

    Args:
        rules: the ruleset, unless ``rulesets`` has the rulesets that apply from a time on, oldest first.
        counted: the days that are not warm-up.
        changes: the times of ruleset writes.
        markers: markers made by hand, as rule id and time.
        nocache, non_deterministic: whether the Gateway declines such requests.
        keys_per_user: whether it keeps users apart under rules that do not vary.
        with_risk: count the hits at risk, which takes long for a long log.
    """
    numbered = [(row["timestamp"], row["logId"] or "", number, row) for number, row in enumerate(rows)]
    ordered = [row for *_, row in sorted(item for item in numbered if is_decidable(item[-1]))]
    restarts = sorted([*changes, *version_restarts(ordered)])
    requests = read_requests(ordered, rulesets=rulesets or [(0, rules)], counted=counted, restarts=restarts)
    for request in requests:
        request.vary = vary_values(request, keys_per_user=keys_per_user)
    outside = sum(not is_decidable(row) and row["day"] in counted for row in rows)
    judgement = Judgement(requests, outside)
    marks = defaultdict(list)
    for rule_id, at in markers:
        marks[rule_id].append(at)
    for request in requests:
        if request.fires:
            for firing in request.decision.fired:
                for target in firing.targets:
                    marks[target].append(request.at + request.work)

    for request in requests:
        request.status = decide_status(request, nocache=nocache, non_deterministic=non_deterministic)
    cached = [request for request in requests if not request.status]
    play(
        cached,
        key=lambda request: (
            *(request.group[:3]),
            (request.kind, id(request) if request.kind == "open" else request.identity),
        ),
        marks=marks,
    )
    for request in requests:
        count(judgement, request)
    if with_risk:
        count_risk(judgement)
    find_bounds(judgement, cached, marks)
    return judgement


def read_requests(
    ordered: Sequence[Row],
    *,
    rulesets: Sequence[tuple[int, Sequence[Rule]]],
    counted: Collection[str],
    restarts: Sequence[int],
) -> list[Request]:
    means = mean_times(ordered)
    conflicting = conflicting_statements(ordered)
    requests = []
    for row in ordered:
        at = row["timestamp"]
        in_force = rulesets[0][1]
        for start, rules in rulesets[1:]:
            if start <= at:
                in_force = rules
        decision = match(in_force, row)
        mean = means.get(row["standardizedSql"], 0)
        kind, identity = identify(row, conflicting)
        requests.append(
            Request(
                row=row,
                at=at,
                counted=row["day"] in counted,
                kind=kind,
                identity=identity,
                restart=sum(restart <= at for restart in restarts),
                decision=decision,
                rule=next((rule for rule in in_force if rule.id == decision.rule_id), None),
                work=row["warehouseExecutionTimeMs"] if is_measured(row) else mean,
                mean=mean,
            )
        )
    return requests


def vary_values(request: Request, *, keys_per_user: bool) -> tuple[str | None, ...]:
    """Return the values that become part of the key."""
    rule = request.rule
    if rule is None or rule.action is not Action.CACHE:
        return ()
    columns = sorted(rule.vary_by or (["userName"] if keys_per_user else []))
    return tuple(request.row[column] for column in columns)


def is_decidable(row: Row) -> bool:
    return (
        row["timestamp"] is not None
        and row["standardizedSql"] is not None
        and row["cacheStatus"] in DECIDABLE
    )


def is_measured(row: Row) -> bool:
    time = row["warehouseExecutionTimeMs"]
    return row["cacheStatus"] in EXECUTED and time is not None and time >= 0


def mean_times(rows: Sequence[Row]) -> dict[str, int]:
    times = defaultdict(list)
    for row in rows:
        if is_measured(row):
            times[row["standardizedSql"]].append(row["warehouseExecutionTimeMs"])
    return {statement: sum(values) // len(values) for statement, values in times.items()}


def version_restarts(rows: Sequence[Row]) -> list[int]:
    restarts = []
    highest = None
    for row in rows:
        version = row["cacheKeyVersion"]
        if version is None:
            continue
        if highest is not None and version > highest:
            restarts.append(row["timestamp"])
        highest = version if highest is None else max(highest, version)
    return restarts


def conflicting_statements(rows: Sequence[Row]) -> set[str]:
    """Return the statements of which some values have two hashes among rows with a cache key."""
    hashes = defaultdict(set)
    for row in rows:
        if row["cacheKey"] is not None and row["queryHash"] is not None:
            hashes[row["standardizedSql"], row["parameterValues"]].add(row["queryHash"])
    return {statement for (statement, _), found in hashes.items() if len(found) > 1}


def identify(row: Row, conflicting: Collection[str]) -> tuple[str, Hashable]:
    statement, values = row["standardizedSql"], row["parameterValues"]
    if statement not in conflicting and len(PLACEHOLDER.findall(statement)) == count_values(values):
        return "exact", (statement, values)
    if row["cacheKey"] is not None:
        return "known", row["queryHash"]
    return "open", None


def count_values(values: str | None) -> int | None:
    """Return the number of bound values, or None if it cannot be told."""
    if values is None:
        return 0
    try:
        parsed = json.loads(values)
    except ValueError:
        return None
    return len(parsed) if isinstance(parsed, list | dict) else None


def decide_status(request: Request, *, nocache: bool, non_deterministic: bool) -> str:
    """Return the status, or '' if the cache decides it."""
    row, action = request.row, request.decision.action
    if action is Action.DENY:
        return "BLOCKED"
    if row["cacheStatus"] == "INVALIDATION_ERROR" and any(f.required for f in request.decision.fired):
        return "INVALIDATION_ERROR"
    if action is Action.CACHE:
        override = row["cacheOverride"]
        declines = (nocache and override == "nocache") or (
            non_deterministic and row["hasNonDeterministicFunctions"] is True and override != "cache"
        )
        if not declines and None not in request.vary:
            return ""
    if request.is_failing:
        return "ERROR"
    return "PASSTHROUGH" if action is None else "BYPASS"


def play(
    requests: Sequence[Request], *, key: Callable[[Request], Hashable], marks: Mapping[str, list[int]]
) -> None:
    """Let the cache answer the requests, which are in order."""
    entries: dict[Hashable, Entry] = {}
    running: dict[Hashable, Entry] = {}
    for request in requests:
        rule = request.rule
        assert rule is not None
        now, where = request.at, key(request)
        if where in running and running[where].born <= now:
            entries[where] = running.pop(where)
        entry = entries.get(where)
        ttl, window = 1000 * rule.ttl_seconds, 1000 * (rule.stale_while_revalidate or 0)
        is_valid = entry is not None and not any(entry.born < at <= now for at in marks.get(rule.id, ()))
        is_fresh = entry is not None and is_valid and now < entry.born + ttl
        is_stale = entry is not None and is_valid and not is_fresh and now < entry.born + ttl + window
        if is_fresh or is_stale:
            request.status, request.entry, request.is_stale = "HIT", entry, is_stale
            if is_stale and where not in running and not request.is_failing:
                request.is_revalidation = True
                running[where] = Entry(now, now + request.work)
        elif where in running:
            request.status = "HOLD"
        elif request.is_failing:
            request.status = "ERROR"
        else:
            request.status = "MISS"
            if entry is None:
                request.reason = "no-cache-entry"
            elif now >= entry.born + ttl:
                request.reason = "ttl-expired"
            else:
                request.reason = "invalidation-marker"
            running[where] = Entry(now, now + request.work)


def count(judgement: Judgement, request: Request) -> None:
    if not request.counted:
        return
    counts = judgement.counts[request.decision.rule_id]
    row = request.row
    counts["requests"] += 1
    counts[STATUS_COUNTS[request.status]] += 1
    if request.reason:
        counts[request.reason] += 1
    if request.status == "HIT":
        counts["staleHits"] += request.is_stale
        counts["hitBytes"] += max(row["responseSize"], 0)
        counts["savedMs"] += request.mean
    counts["revalidations"] += request.is_revalidation
    if request.status in EXECUTED or request.is_revalidation:
        counts["spentMs"] += request.work
    if request.fires:
        for firing in request.decision.fired:
            judgement.counts[firing.rule_id]["fired"] += 1
            for target in firing.targets:
                judgement.counts[target]["markers"] += 1


def count_risk(judgement: Judgement) -> None:
    changes = defaultdict(list)
    for request in judgement.requests:
        row = request.row
        if (
            (row["isDataChange"] or row["isDDL"])
            and not request.is_failing
            and request.status not in {"BLOCKED", "INVALIDATION_ERROR"}
        ):
            for table in find_changed_tables(row["standardizedSql"], read_tables(row["tables"])):
                changes[table].append(request.at + request.work)
    for request in judgement.requests:
        if request.status != "HIT" or not request.counted:
            continue
        assert request.entry is not None
        read = [parse(name) for name in read_tables(request.row["tables"])]
        times = [
            at
            for table, own in changes.items()
            for at in own
            if any(compare(parse(table), name) != "different" for name in read)
        ]
        counts = judgement.counts[request.decision.rule_id]
        counts["riskLow"] += any(request.entry.born < at <= request.at for at in times)
        counts["riskHigh"] += any(request.entry.started < at <= request.at for at in times)


def find_bounds(judgement: Judgement, cached: Sequence[Request], marks: Mapping[str, list[int]]) -> None:
    groups = defaultdict(list)
    for request in cached:
        groups[request.group].append(request)
    for members in groups.values():
        rule = members[0].rule
        assert rule is not None
        opened = [request for request in members if request.kind == "open"]
        known = [request for request in members if request.kind == "known"]
        hits = sum(request.status == "HIT" for request in members if request.counted)
        high = hits
        if opened:
            merged = play_merged(opened, marks)
            judgement.merged.update(zip(opened, merged, strict=True))
            least = max(count_misses(known), count_misses(merged))
            if rule.stale_while_revalidate:
                least = certain_misses(members, marks)
            high = sum(request.counted for request in members) - least
        elif known:
            least = count_misses(play_merged(known, marks))
            if rule.stale_while_revalidate:
                least = certain_misses(known, marks)
            hidden = sum(request.counted for request in known) - least
            if hidden > 0:
                judgement.positions.append(hits / hidden)
        judgement.high_hits[rule.id] += high
        judgement.high_saved[rule.id] += high * members[0].mean


def count_misses(requests: Sequence[Request]) -> int:
    return sum(request.status == "MISS" for request in requests if request.counted)


def play_merged(requests: Sequence[Request], marks: Mapping[str, list[int]]) -> list[Request]:
    """Return the requests as if all had one identity."""
    copies = [Request(**{name: getattr(r, name) for name in COPIED}) for r in requests]
    play(copies, key=lambda _: 0, marks=marks)
    return copies


COPIED = ("row", "at", "counted", "kind", "identity", "restart", "decision", "rule", "work", "mean", "vary")


def certain_misses(requests: Sequence[Request], marks: Mapping[str, list[int]]) -> int:
    rule = requests[0].rule
    assert rule is not None
    life = 1000 * (rule.ttl_seconds + (rule.stale_while_revalidate or 0))
    certain = 0
    for number, request in enumerate(requests):
        if number == 0:
            is_certain = True
        else:
            before = requests[number - 1].at + requests[number - 1].work
            is_certain = request.at >= before + life or any(
                before < at <= request.at for at in marks.get(rule.id, ())
            )
        certain += is_certain and request.counted
    return certain
