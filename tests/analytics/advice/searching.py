"""Search logs for recommendations, in memory or as the service does, and check what they promise."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

import duckdb
import msgspec

from accounts.tenants.pricing import Pricing
from analytics.advice.mine import Advice, mine
from analytics.advice.proposal import apply_edits, read_edits
from analytics.advice.recommend import Decision, queue_mining
from analytics.advice.search import run_mining
from analytics.models import Recommendation
from analytics.numbers.days import find_stale_days, rebuild_day
from analytics.replay.figures import figures_of, figures_of_replay
from analytics.replay.load import Job
from rules.language import complete_rule, read_rules
from rules.lint import lint_ruleset
from rules.tables.warehouse import ANY_TABLES, WarehouseTables
from tenantadmin.lib.objectstore import default_store
from tests.analytics.advice.logs import Arrival, make_log, read
from tests.analytics.replay.streams import DAYS, run_replay, write_days
from tests.objects import save_entries

if TYPE_CHECKING:
    from analytics.replay.load import DayFile
    from tests.analytics.savings.judge import Price

Rules = list[dict[str, Any]]

MINUTE = 60_000

DAY_MS = 1440 * MINUTE


def make_job(files: Sequence[DayFile], rules: Rules) -> Job:
    parsed = read_rules(rules)
    return Job(files, files[1].day, files[-1].day, parsed, parsed)


def run(
    files: Sequence[DayFile],
    rules: Rules,
    *,
    tables: WarehouseTables = ANY_TABLES,
    prices: Sequence[Price] = (),
    **options: Any,
) -> Advice:
    job = replace(make_job(files, rules), tables=tables, pricing=Pricing.of(prices))
    with duckdb.connect(config={"threads": 1}) as connection:
        return mine(connection, job, rules, **{"tables": tables, "dismissed": {}, **options})


def run_log(
    tmp_path: Path, arrivals: Sequence[Arrival], rules: Rules, **options: Any
) -> tuple[list[DayFile], Rules, Advice]:
    """Return the log that these rules make, the rules, and what is recommended for them."""
    complete = [complete_rule(rule) for rule in rules]
    files = write_days(make_log(arrivals, (0, complete)), tmp_path)
    return files, complete, run(files, complete, **options)


def replay_of(
    files: Sequence[DayFile], rules: Rules, current: Rules, tables: WarehouseTables = ANY_TABLES
) -> dict[str, Any]:
    job = Job(
        files,
        files[1].day,
        files[-1].day,
        read_rules(rules),
        read_rules(current),
        tables=tables,
    )
    with duckdb.connect(config={"threads": 1}) as connection:
        return run_replay(connection, job)


def with_it(rules: Rules, found: Mapping[str, Any]) -> list[Any]:
    return apply_edits(rules, read_edits(found["patch"]))


def check_promises(
    files: Sequence[DayFile], rules: Rules, advice: Advice, tables: WarehouseTables = ANY_TABLES
) -> None:
    """Each one and its alternatives are lint-clean, and their replays give what was predicted."""
    warnings = {(row.code, row.rule_id) for row in lint_ruleset({"rules": rules}).warnings}
    for found, replayed in zip(advice.recommendations, advice.replays, strict=True):
        if replayed is None:
            assert found["patch"] == []
            continue
        changed = with_it(rules, found)
        lint = lint_ruleset({"rules": changed})
        assert lint.valid
        assert {(row.code, row.rule_id) for row in lint.warnings} <= warnings
        result = replay_of(files, changed, rules, tables)
        assert result["total"] == found["predicted"]["total"]
        assert result["against"]["total"] == found["predicted"]["against"]
        assert (replayed.rules, msgspec.to_builtins(replayed.result)) == (changed, result)
        assert figures_of(found["predicted"]["gain"]) == figures_of_replay(result)
        for other in found["alternatives"]:
            assert lint_ruleset({"rules": with_it(rules, other)}).valid
            result = replay_of(files, with_it(rules, other), rules)
            assert result["total"] == other["predicted"]["total"]
            assert result["against"]["total"] == other["predicted"]["against"]
            assert figures_of(other["predicted"]["gain"]) == figures_of_replay(result)


def times(days: int, every_minutes: int, *, offset: int = 0) -> range:
    """Return times in ms."""
    return range(offset * MINUTE, days * DAY_MS, every_minutes * MINUTE)


def cached(rule_id: str, *tables: str, ttl: int = 86_400, **fields: Any) -> dict[str, Any]:
    conditions = {"isReadOnly": True, "tables": {"containsAny": list(tables)}}
    return {"id": rule_id, "conditions": conditions, "ttlSeconds": ttl, **fields}


def firing(table: str, *targets: str, rule_id: str = "changes") -> dict[str, Any]:
    """Return a rule that invalidates others when a table changes."""
    conditions = {"isDataChange": True, "tables": {"containsAny": [table]}}
    return {"id": rule_id, "conditions": conditions, "invalidateRules": [*targets]}


def the(advice: Advice, kind: str) -> Mapping[str, Any]:
    (found,) = (row for row in advice.recommendations if row["kind"] == kind)
    return found


#: On each of three days, 20 requests for one result of an expensive statement.
ADS = [
    read("SELECT sum(x) FROM m.ads WHERE c = ?", "m.ads", at=day * DAY_MS + number * 20 * MINUTE, ms=5000)
    for day in range(3)
    for number in range(20)
]

#: As many of another one, each for another result.
RARE = [
    read(
        "SELECT * FROM m.rare WHERE id = ?",
        "m.rare",
        at=day * DAY_MS + n * MINUTE,
        value=day * 50 + n,
    )
    for day in range(3)
    for n in range(20)
]


def put_log(tenant: UUID, arrivals: Iterable[Arrival], rules: Any = ()) -> None:
    """Store and build the log that a Gateway with these rules makes."""
    rows = make_log(arrivals, (0, rules))
    for day in DAYS:
        if of_day := [row for row in rows if row["day"] == day.isoformat()]:
            save_entries(tenant, day, of_day)
    for stale in find_stale_days(default_store(), tenant=tenant):
        rebuild_day(default_store(), tenant=tenant, day=stale)


def search(tenant: UUID) -> list[Recommendation]:
    queue_mining(tenant_id=tenant, actor="system")
    found = run_mining(default_store(), tenant_id=tenant)
    assert found is not None
    assert (found.state, found.error) == ("done", "")
    return list(Recommendation.objects.filter(tenant_id=tenant, state="open").order_by("rank"))


def accept(found: Recommendation) -> Any:
    decision = Decision(tenant_id=found.tenant_id, recommendation_id=found.pk, actor="ada@example.org")
    return decision.accept()
