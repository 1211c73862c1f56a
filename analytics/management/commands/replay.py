"""``manage.py replay --tenant ID``: replay a ruleset over a tenant's log."""

from __future__ import annotations

from argparse import ArgumentParser
from datetime import date
from json import loads
from pathlib import Path
from typing import Any
from uuid import UUID

from django.core.management.base import CommandError
from rich.table import Table

from accounts.management.arguments import add_days, add_tenant
from analytics.management.printing import show_bill, show_range
from analytics.models import ReplayRun
from analytics.replay.execution import run_next
from analytics.replay.figures import bounds_of, count_requests
from analytics.replay.runs import describe_replay, queue_replay
from analytics.replay.words import describe_sample
from logs.management.operators import OperatorCommand
from rules.ruleset import read_ruleset
from tenantadmin.lib.core.formats import percent
from tenantadmin.lib.core.rendering import dump_json
from tenantadmin.lib.database.connections import Busy
from tenantadmin.lib.objectstore import default_store
from tenantadmin.lib.terminal import visible


class Command(OperatorCommand):
    help = (
        "Replays a ruleset over a tenant's log and prints what it would have done, beside the current one. "
        "Without --rules and --seq: the current ruleset, which shows how well a replay agrees with the log."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_tenant(parser)
        add_days(parser)
        parser.add_argument("--rules", type=Path, metavar="FILE", help='a JSON file: {"rules": [...]}')
        parser.add_argument("--seq", type=int, help="a revision of the rules")
        parser.add_argument("--warmup-days", type=int, default=1, choices=range(8), metavar="N")
        parser.add_argument("--exact", action="store_true", help="all entries of a large log, not a sample")
        parser.add_argument("--json", action="store_true", help="print the whole result as JSON")

    def handle(
        self,
        *,
        tenant: UUID,
        first: date,
        last: date,
        rules: Path | None,
        seq: int | None,
        warmup_days: int,
        exact: bool,
        json: bool,
        **_: Any,
    ) -> None:
        try:
            document = read_ruleset(tenant).rules if rules is None and seq is None else _read_rules(rules)
            run = queue_replay(
                tenant_id=tenant,
                rules=document,
                seq=seq,
                first_day=first,
                last_day=last,
                warmup_days=warmup_days,
                gateway={},
                is_exact=exact,
                actor=self.actor,
            )
            while run.state not in ReplayRun.FINISHED:
                if not run_next(default_store(), tenant_id=tenant):
                    break
                run.refresh_from_db()
        except Busy as error:
            raise CommandError(
                "A worker runs a replay of this tenant. Try again when it has ended."
            ) from error
        if run.state != ReplayRun.State.DONE:
            raise CommandError(visible(run.error) or f"The replay is {run.state}.")
        if json:
            self.stdout.write(dump_json(describe_replay(run)).decode())
        else:
            self._print(run.result or {})

    def _print(self, result: dict[str, Any]) -> None:
        calibration, window = result["calibration"], result["window"]
        table = Table(
            title=f"{window['from']} to {window['to']}; {calibration['grade']}: "
            f"{percent(calibration['share'])} of {calibration['rows']} log entries as in the log"
        )
        table.add_column("rule")
        for name in ("requests", "hits", "now", "misses", "saved s", "spent s", "risk"):
            table.add_column(name, justify="right")
        now = {rule["ruleId"]: rule for rule in result["against"]["rules"]}
        for rule in result["rules"]:
            table.add_row(visible(rule["ruleId"] or "(no rule)"), *_cells(rule, now.get(rule["ruleId"])))
        table.add_row("total", *_cells(result["total"], result["against"]["total"]))
        self.print_table(table)
        if billed := result.get("billed"):
            self.stdout.write(f"Billed: {show_bill(billed['total'])}; now: {show_bill(billed['against'])}")
        if sample := result.get("sample"):
            self.stdout.write(describe_sample(sample))
        if calibration["causes"]:
            causes = Table(title="Where the replay of the rules in force differs from the log")
            for name in ("log", "replay", "why"):
                causes.add_column(name)
            causes.add_column("log entries", justify="right")
            for cause in calibration["causes"]:
                causes.add_row(cause["logged"], cause["replayed"], cause["why"], str(cause["count"]))
            self.print_table(causes)
        self.stdout.write(f"Caveats: {', '.join(result['caveats'])}")


def _cells(counts: dict[str, Any], now: dict[str, Any] | None) -> list[str]:
    return [
        str(count_requests(counts)),
        show_range(bounds_of(counts, "hits")),
        "-" if now is None else show_range(bounds_of(now, "hits")),
        show_range(bounds_of(counts, "misses")),
        show_range(_seconds(bounds_of(counts, "savedMs"))),
        show_range(_seconds(bounds_of(counts, "spentMs"))),
        show_range(bounds_of(counts, "risk")),
    ]


def _seconds(bounds: dict[str, Any]) -> dict[str, Any]:
    return {name: (value or 0) // 1000 for name, value in bounds.items()}


def _read_rules(path: Path | None) -> object:
    """Return the rules in a file; None without a file.

    Raises:
        CommandError: the file cannot be read, or is not a ruleset in JSON.
    """
    if path is None:
        return None
    try:
        document = loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise CommandError(f"Cannot read {visible(str(path))}: {visible(str(error))}") from error
    if not isinstance(document, dict) or "rules" not in document:
        raise CommandError(f'{visible(str(path))} must be a JSON object with "rules".')
    return document["rules"]
