"""What the editor of rules completes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analytics.admin.completion import rule_words
from logs.models import QueryRun
from rules.conditions.keys import CONDITION_KEYS
from tests.admin.logs import ENTRY, put_log, to

if TYPE_CHECKING:
    from django.test import Client

    from accounts.models import Tenant


class TestCompletion:
    def test_words_of_rules(self) -> None:
        words = {(word["value"], word["kind"]) for word in rule_words([{"id": "orders", "name": "Orders"}])}
        assert {(name, "condition key") for name in CONDITION_KEYS} <= words
        assert {
            ("containsAny", "operator"),
            ("ignoreCase", "operator"),
            ("ttlSeconds", "field"),
            ("bypass", "action"),
            ("orders", "rule id"),
            ("any", "combines conditions"),
        } <= words

    def test_values_that_the_log_holds(self, access: Client, tenant: Tenant) -> None:
        put_log(tenant, ENTRY, ENTRY, {**ENTRY, "userName": "bea", "tables": "no json", "host": ""})
        answer = access.post(f"{to('tenant-rules', tenant)}?part=values", {})
        assert [(word["value"], word["kind"], word["meaning"]) for word in answer.json()["words"]] == [
            ("sales.orders", "tables in the log", "2 log entries"),
            ("ana", "userName in the log", "2 log entries"),
            ("bea", "userName in the log", "1 log entry"),
        ]
        assert QueryRun.objects.get().email == "support@example.org"
