"""``manage.py explain --tenant ID [--day DAY] LOGID``: explain which rule decides a logged request."""

from __future__ import annotations

import datetime as dt
import json
from argparse import ArgumentParser
from typing import TYPE_CHECKING, Any
from uuid import UUID

import msgspec

from accounts.management.arguments import add_tenant, day_argument
from analytics.reports.explain import LoggedExplanationAnswer, explain_logged
from logs.management.operators import OperatorCommand
from tenantadmin.lib.core.rendering import dump_json
from tenantadmin.lib.objectstore import default_store
from tenantadmin.lib.terminal import visible

if TYPE_CHECKING:
    from tenantadmin.lib.core.errors import ApiError


class Command(OperatorCommand):
    help = "Says which rule decides a logged request, what the others lack, and why it was a miss."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("log_id", metavar="LOGID")
        add_tenant(parser)
        parser.add_argument(
            "--day", type=day_argument, help="YYYY-MM-DD; default: the newest day with the entry"
        )
        parser.add_argument("--seq", type=int, help="a revision of the rules; default: that in force then")
        parser.add_argument("--draft", type=UUID, metavar="ID", help="a draft of the rules")
        parser.add_argument("--json", action="store_true", dest="as_json", help="print the answer of the API")

    def handle(
        self,
        *,
        log_id: str,
        tenant: UUID,
        day: dt.date | None,
        seq: int | None,
        draft: UUID | None,
        as_json: bool,
        **_: Any,
    ) -> None:
        explanation = explain_logged(
            default_store(),
            tenant=tenant,
            day=day,
            log_id=log_id,
            seq=seq,
            draft_id=draft,
            reader=self.reader,
        )
        lines = _json_lines(explanation) if as_json else _lines(explanation)
        self.stdout.write("\n".join(map(visible, lines)))

    def describe_error(self, error: ApiError) -> str:
        return " ".join([error.text, *(detail.message for detail in error.details)])


def _json_lines(explanation: LoggedExplanationAnswer) -> list[str]:
    return msgspec.json.format(dump_json(explanation), indent=1).decode().split("\n")


def _lines(explanation: LoggedExplanationAnswer) -> list[str]:
    logged, decision = explanation.logged, explanation.decision
    names = {rule.rule_id: rule.name for rule in explanation.rules}
    logged_rule = _show(logged.matched_rule, logged.matched_rule_name)
    decides = _show(decision.rule_id, names.get(decision.rule_id or ""))
    lines = [
        f"Logged:   {logged.cache_status}, rule {logged_rule}",
        f"Decides:  rule {decides}: {' or '.join(decision.statuses)}",
        f"Revision: {explanation.ruleset.seq}",
    ]
    if explanation.disagreement:
        lines.append("The log names another rule than the one that decides.")
    if explanation.miss:
        miss = msgspec.to_builtins(explanation.miss)
        lines.append("Miss:     " + json.dumps(miss, ensure_ascii=False))
    for rule in explanation.rules:
        distance = "never" if rule.distance is None else rule.distance
        lines.append(f"{rule.outcome:14} {_show(rule.rule_id, rule.name)} (distance {distance})")
        lines += [
            f"    {test.path}: {'not ' if test.negated else ''}{test.operator} "
            f"{json.dumps(test.operand, ensure_ascii=False)}, "
            f"and the value is {json.dumps(test.value, ensure_ascii=False)}"
            for test in rule.failed
        ]
    return lines


def _show(rule_id: str | None, name: str | None) -> str:
    """Return a rule by its name, with its id if that differs."""
    if rule_id is None:
        return "(none)"
    return rule_id if name in {None, "", rule_id} else f"“{name}” ({rule_id})"
