"""``manage.py recommend --tenant ID``: search for recommendations, and print them."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any
from uuid import UUID

from django.core.management.base import CommandError
from rich.table import Table

from accounts.management.arguments import add_tenant
from accounts.tenants.listing import require_live_tenant
from analytics.advice.recommend import (
    describe_mining,
    describe_recommendation,
    list_recommendations,
    queue_mining,
)
from analytics.advice.search import run_mining
from analytics.advice.words import explain_nothing
from analytics.management.printing import show_range
from analytics.models import Mining, Recommendation
from analytics.replay.words import describe_sample
from logs.management.operators import OperatorCommand
from tenantadmin.lib.core.formats import money_between, percent
from tenantadmin.lib.core.rendering import dump_json
from tenantadmin.lib.objectstore import default_store
from tenantadmin.lib.terminal import visible


class Command(OperatorCommand):
    help = "Searches for changes of a tenant's rules that would save warehouse time, and prints them."

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_tenant(parser)
        parser.add_argument("--json", action="store_true", dest="as_json", help="print the answer of the API")

    def handle(self, *, tenant: UUID, as_json: bool, **_: Any) -> None:
        require_live_tenant(tenant)
        queue_mining(tenant_id=tenant, actor=self.actor)
        # If a worker searches for the tenant already, wait for its result.
        run_mining(default_store(), tenant_id=tenant, wait=True)
        mining = Mining.objects.filter(pk=tenant).first()
        if mining is None or mining.state != Mining.State.DONE:
            raise CommandError("The tenant was deleted." if mining is None else visible(mining.error))
        recommendations = list_recommendations(tenant_id=tenant)
        if as_json:
            document = {
                "mining": describe_mining(mining),
                "recommendations": [describe_recommendation(row) for row in recommendations],
            }
            self.stdout.write(dump_json(document).decode())
        else:
            self._print(
                mining.report or {}, [row for row in recommendations if row.state in Recommendation.UNDECIDED]
            )

    def _print(self, report: dict[str, Any], recommendations: list[Recommendation]) -> None:
        window = report["basedOn"]["window"]
        if not recommendations:
            self.stdout.write("\n".join(["Nothing is recommended.", *explain_nothing(report)]))
        if window is None:
            return
        table = Table(title=f"Recommendations from {window['from']} to {window['to']}")
        table.add_column("kind")
        table.add_column("what")
        for name in ("hits", "saved s", "of all", "at risk", "bill s", "money"):
            table.add_column(name, justify="right")
        for row in recommendations:
            gain = row.predicted["gain"]
            table.add_row(
                row.kind,
                visible(row.title),
                _change(gain["hits"]),
                _change({name: (value or 0) // 1000 for name, value in gain["savedMs"].items()}),
                percent(gain["savedMs"]["high"] / max(report["warehouseMs"], 1)),
                _change(gain["risk"]),
                _change({name: value // 1000 for name, value in gain["billedMs"].items()})
                if "billedMs" in gain
                else "",
                _money(gain.get("money")),
            )
        refused = Table(title="Not proposed")
        refused.add_column("why")
        for name in ("statements", "requests", "warehouse s"):
            refused.add_column(name, justify="right")
        for reason in report["notProposed"]:
            refused.add_row(
                reason["code"],
                *(str(reason[name]) for name in ("statements", "requests")),
                str(reason["warehouseMs"] // 1000),
            )
        if sample := report.get("sample"):
            self.stdout.write(describe_sample(sample))
        self.print_table(table, width=120)
        self.print_table(refused, width=120)


def _money(money: dict[str, str] | None) -> str:
    return money_between((money["low"], money["high"]), money["currency"]) if money else ""


def _change(bounds: dict[str, Any]) -> str:
    return show_range(bounds, form="+")
