"""Every operation x every kind of caller. Contract: Authentication; docs/permissions.md."""

from __future__ import annotations

import json
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from accounts.access.scopes import Level
from accounts.signin.providers import ProviderNotConfigured
from scripts.permissions import permissions_markdown
from tenantadmin.lib.http.published_contract import published_contract
from tests.authz.callers import GONE, set_stage
from tests.authz.expected import EXPECTED, WITH_REASON
from tests.authz.sending import OPERATIONS, POLICIES, PROTECTED, REFUSED, send

if TYPE_CHECKING:
    from tests.authz.callers import Stage
    from tests.authz.sending import Operation


pytestmark = pytest.mark.django_db


def ask(operation: Operation, stage: Stage, caller: str) -> int:
    """Return the status that a caller gets."""
    return send(operation, stage, caller).status_code


PUBLIC = [operation for operation in OPERATIONS if POLICIES[operation.name].level is Level.PUBLIC]


@pytest.mark.parametrize("operation", PROTECTED, ids=lambda operation: operation.label)
def test_lets_exactly_the_callers_of_the_table_through(operation: Operation, stage: Stage) -> None:
    statuses = {caller: ask(operation, stage, caller) for caller in stage.callers}
    allowed = {caller for caller, status in statuses.items() if status not in REFUSED}
    assert allowed == EXPECTED[operation.label]
    assert {caller for caller, status in statuses.items() if status == HTTPStatus.UNAUTHORIZED} == GONE
    assert not {caller for caller in allowed if statuses[caller] == HTTPStatus.INTERNAL_SERVER_ERROR}


@pytest.mark.parametrize("operation", PROTECTED, ids=lambda operation: operation.label)
def test_staff_in_the_dashboard_write_with_a_reason(operation: Operation, stage: Stage) -> None:
    answer = send(operation, stage, "staff", headers={})
    details = answer.json().get("details", []) if answer.status_code == HTTPStatus.FORBIDDEN else []
    is_refused = [detail["code"] for detail in details] == ["missing-reason"]
    assert is_refused == (operation.label in WITH_REASON)


@pytest.mark.parametrize("operation", PUBLIC, ids=lambda operation: operation.label)
def test_a_public_operation_looks_at_no_token(operation: Operation, stage: Stage) -> None:
    statuses = {ask(operation, stage, caller) for caller in ("anonymous", "expired", "bridge", "owner")}
    assert len(statuses) == 1
    assert not statuses & REFUSED


@pytest.mark.parametrize(
    "operation",
    # Identity providers and mail programs add parameters of their own to where they send a browser.
    [
        operation
        for operation in OPERATIONS
        if operation.name not in {"finishSignIn", "finishSignInAt", "showMagicLink"}
        and (operation in PUBLIC or EXPECTED[operation.label])
    ],
    ids=lambda operation: operation.label,
)
def test_an_unknown_query_parameter_is_a_400(operation: Operation, stage: Stage) -> None:
    caller = "anonymous" if operation in PUBLIC else min(EXPECTED[operation.label])
    answer = send(operation, stage, caller, query="x=1")
    assert (answer.status_code, answer.json()["message"]) == (400, "A query parameter is not known.")


def test_the_table_names_every_operation() -> None:
    assert {operation.label for operation in PROTECTED} == set(EXPECTED)
    assert {operation.name for operation in OPERATIONS} == set(POLICIES)


def test_the_documentation_is_current() -> None:
    page = Path(__file__).parents[2] / "docs" / "permissions.md"
    assert page.read_text() == permissions_markdown(), "run 'make contract'"


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
