"""What it costs in hits and saved time if every cache rule varies by userName: docs/contributing.md."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from uuid import UUID

import duckdb
import msgspec

from analytics.demo.logs import compact_days
from analytics.replay.load import Job
from analytics.replay.replayer import replay
from bench.harness import console
from rules.language import Action, read_rules
from tenantadmin.lib.objectstore import LocalStore

if TYPE_CHECKING:
    from rules.language import Rule


def compare(directory: str, *, tenant: str, rules: str) -> None:
    """Replay a log under rules that share all results, and under the same rules per user. Print both.

    Args:
        directory: the folder above the folder of the tenant, which has ``logs/YYYY/MM/DD/HH/``.
        rules: a file with a ruleset, as the body of ``PUT /config/tenants/{tenant}/rules``.
    """
    given = read_rules(msgspec.json.decode(Path(rules).read_bytes())["rules"])
    shared, keyed = (tuple(_vary(rule, columns) for rule in given) for columns in ((), ("userName",)))
    logs = Path(directory) / tenant / "logs"
    days = sorted({date(*map(int, path.relative_to(logs).parts)) for path in logs.glob("*/*/*")})
    with TemporaryDirectory() as place, duckdb.connect(config={"threads": 1}) as connection:
        files = compact_days(LocalStore(Path(directory)), UUID(tenant), days, directory=Path(place))
        result = msgspec.to_builtins(replay(connection, Job(files, days[1], days[-1], keyed, shared)))
    console.print(f"{len(days) - 1} days; {result['rows']}; {result['gateway']}")
    keyed_counts = {row["ruleId"]: row for row in result["rules"]} | {"all": result["total"]}
    for before in [*result["against"]["rules"], {**result["against"]["total"], "ruleId": "all"}]:
        if before["hits"]["high"]:
            after = keyed_counts[before["ruleId"]]
            console.print(
                f"| {before['ruleId']} | {before['requests']} | {_cells(before)} | {_cells(after)} |"
            )


def _vary(rule: Rule, columns: tuple[str, ...]) -> Rule:
    return replace(rule, vary_by=columns) if rule.action is Action.CACHE else rule


def _cells(counts: dict[str, Any]) -> str:
    """Return the bounds of hits and of the saved seconds."""
    hits, saved = counts["hits"], counts["savedMs"]
    return f"{hits['low']} to {hits['high']} | {saved['low'] // 1000} to {saved['high'] // 1000} s"
