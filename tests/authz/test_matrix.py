"""Every operation x every kind of caller. Contract: Authentication; docs/permissions.md."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

import pytest

from accounts.access.policy import Level
from tests.authz.callers import GONE
from tests.authz.expected import EXPECTED, WITH_REASON
from tests.authz.requests import POLICIES
from tests.authz.sending import OPERATIONS, PROTECTED, REFUSED, send

if TYPE_CHECKING:
    from tests.authz.callers import Stage
    from tests.authz.requests import Operation


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
    is_refused = [it["code"] for it in details] == ["missing-reason"]
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
