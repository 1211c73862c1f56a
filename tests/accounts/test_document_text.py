"""Changes of configurations and accounts in words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from accounts.diff import LABELS, diff_documents, say_fields


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (
            {"defaults": {"cacheEnabled": True, "ttlSeconds": 3600}, "fqdns": ["a.example", "b.example"]},
            {"defaults": {"cacheEnabled": False, "ttlSeconds": 90}, "fqdns": []},
            [
                ("The cache is on", "yes", "no"),
                ("Results live for", "1 h", "90 s"),
                ("Addresses that programs connect to", "a.example, b.example", "–"),
            ],
        ),
        (
            {"labels": {"team": "a"}},
            {"labels": {"a/b": "c"}, "warehouse": {"adapterType": "databricks", "port": 443}},
            [
                ("Label team", "a", "–"),
                ("Label a/b", "–", "c"),
                ("Kind", "–", "databricks"),
                ("Port", "–", "443"),
            ],
        ),
        (
            {},
            {"access": {"staffApproval": "required"}, "billingEmail": "a@example.org"},
            [
                ("When staff of the service want to read it", "–", "an owner approves it first"),
                ("Billing email", "–", "a@example.org"),
            ],
        ),
    ],
)
def test_fields_are_said_with_their_labels(
    before: dict[str, Any], after: dict[str, Any], said: list[tuple[str, str, str]]
) -> None:
    changes = say_fields(diff_documents(before=before, after=after))
    assert [(it.field, it.before, it.after) for it in changes] == said


def test_labels_are_those_of_the_form() -> None:
    form = Path(settings.BASE_DIR, "tenantadmin/static/dashboard/pages/config.js").read_text()
    assert [label for label in LABELS.values() if f'"{label}"' not in form] == []
