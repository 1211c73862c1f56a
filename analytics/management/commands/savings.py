"""``manage.py savings --tenant ID``: what the cache saves of the time that the warehouse bills."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from datetime import date
from typing import Any, Final
from uuid import UUID

from rich.table import Table

from accounts.management.arguments import add_days, add_tenant
from accounts.tenants.listing import require_live_tenant
from analytics.reports.savings import STEPS, Step, find_source, read_savings
from logs.layout import HOUR_MS
from logs.management.operators import OperatorCommand
from tenantadmin.lib.core.formats import percent
from tenantadmin.lib.objectstore import default_store
from tenantadmin.lib.terminal import visible

_PARTS: Final = ("withCache", "without", "saved")


class Command(OperatorCommand):
    help = (
        "Prints the time that the warehouse is billed for with the cache and without it, beside the time "
        "that statements run, and what each rule saves."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_tenant(parser)
        add_days(parser)
        parser.add_argument("--step", choices=STEPS, default="day")
        parser.add_argument("--json", action="store_true", dest="as_json", help="print the answer of the API")

    def handle(self, *, tenant: UUID, first: date, last: date, step: Step, as_json: bool, **_: Any) -> None:
        require_live_tenant(tenant)
        source = find_source(tenant=tenant, first=first, last=last, step=step)
        body = read_savings(default_store(), source, reader=self.reader)[1]
        if as_json:
            self.stdout.write(body.decode())
        else:
            self._print(json.loads(body), step)

    def _print(self, savings: dict[str, Any], step: str) -> None:
        window, currency = savings["window"], savings["currency"] or "money"
        table = Table(title=f"{window['from']} to {window['to']}, in hours")
        table.add_column(step)
        for name in ("billed", "without", "saved", "busy", "without", "saved", currency):
            table.add_column(name, justify="right")
        for row in savings[f"{step}s"]:
            table.add_row(row[step], *_cells(row))
        table.add_row("total", *_cells(savings["total"]))
        self.print_table(table)
        rules = Table(title="How much more would be billed without a rule. These do not add up to the total")
        rules.add_column("rule")
        for name in ("hits", "billed h", "busy h", currency):
            rules.add_column(name, justify="right")
        for rule in savings["rules"]:
            hours = [_hours(rule[name]) for name in ("marginalMs", "busyMs")]
            rule_id = visible(rule["ruleId"] or "(no rule)")
            rules.add_row(rule_id, str(rule["hits"]), *hours, rule["money"] or "-")
        self.print_table(rules)
        if savings["unmeasured"]:
            share = percent(savings["unmeasuredShare"])
            self.stdout.write(
                f"Log entries whose time is unknown are not counted: {savings['unmeasured']} ({share})"
            )
        self.stdout.write(f"Caveats: {', '.join(savings['caveats'])}")


def _cells(row: dict[str, Any]) -> list[str]:
    times = [_hours(row[part][name]) for name in ("billedMs", "busyMs") for part in _PARTS]
    return [*times, row["saved"]["money"] or "-"]


def _hours(ms: int) -> str:
    return f"{ms / HOUR_MS:.1f}"
