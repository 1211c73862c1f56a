"""Send the requests of all operations."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from django.db import transaction

from accounts.access.policy import Level
from tests.authz.requests import POLICIES, Operation, bodies, operations
from tests.conftest import ApiClient

#: Staff in the dashboard, who give a reason with what they write.
STAFF = {"staff", "staff with access", "support", "support with access"}

if TYPE_CHECKING:
    from django.test.client import _MonkeyPatchedWSGIResponse as Answer

    from tests.authz.callers import Stage

OPERATIONS = operations()
PROTECTED = [operation for operation in OPERATIONS if POLICIES[operation.name].level is not Level.PUBLIC]
REFUSED = {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}


def send(
    operation: Operation,
    stage: Stage,
    caller: str,
    *,
    query: str = "",
    body: Any = None,
    headers: dict[str, str] | None = None,
) -> Answer:
    """Return what a caller is answered; what the request did is undone."""
    who = stage.callers[caller]
    if headers is None and caller in STAFF:
        headers = {"X-Reason": "ticket%2042"}
    path = operation.path(stage, who)
    with transaction.atomic():
        answer = ApiClient(who.token).request(
            operation.method,
            f"{path}{'&' if '?' in path else '?'}{query}" if query else path,
            bodies(stage).get(operation.name, {}) if body is None else body,
            headers=headers,
        )
        transaction.set_rollback(True)
    return answer
