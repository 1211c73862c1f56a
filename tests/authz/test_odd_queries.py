"""Query parameters with texts that PostgreSQL refuses, or that no UTF-8 is, are bad requests, not faults."""

from __future__ import annotations

import json
from typing import Any

import pytest

from accounts.signin.providers import ProviderNotConfigured
from tenantadmin.lib.http.published_contract import published_contract
from tests.authz.callers import set_stage
from tests.authz.sending import OPERATIONS, send

CONTRACT = json.loads(published_contract()[0])
#: NUL, half of a surrogate pair, no UTF-8, a number beyond 64 bits, a time beyond the calendar.
TEXTS = ("%00", "a%00b", "%ED%A0%80", "%FF", "9" * 30, "99999-12-31T00:00:00Z", "%F0%9F%98%80")


def parameters() -> dict[str, list[str]]:
    """Return the names of each operation's query parameters."""
    return {
        operation["operationId"]: [
            found["name"] for found in operation.get("parameters", []) if found["in"] == "query"
        ]
        for path in CONTRACT["paths"].values()
        for method, operation in path.items()
        if method in {"get", "post", "put", "patch", "delete"}
    }


@pytest.mark.slow
@pytest.mark.django_db
def test_an_odd_text_in_a_query_is_no_fault() -> None:
    stage = set_stage()
    known: Any = parameters()
    faults = []
    tried = 0
    for operation in OPERATIONS:
        for name in known.get(operation.name, []):
            for text in TEXTS:
                for caller in ("platform admin", "wildcard PAT", "owner"):
                    answer = send(operation, stage, caller, query=f"{name}={text}")
                    tried += 1
                    # The contract has a 500 for signing in without a provider.
                    if answer.status_code >= 500 and answer.json()["error"] != ProviderNotConfigured.code:
                        faults.append((operation.label, name, text, caller, answer.content))
    assert tried > 1_000
    assert faults == []
