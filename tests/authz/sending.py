"""One request per operation, found by walking the addresses; only bodies and queries are written by hand."""

from __future__ import annotations

import re
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from django.db import transaction

from accounts.access.scopes import Level
from accounts.routes import declared_routes
from tests.authz.callers import TARGET, Caller, Stage
from tests.conftest import ApiClient
from tests.operations import routes

POLICIES = declared_routes()

UNKNOWN_ID = "3f2b8f0c-6d2f-4f0e-9a55-0d6f6d1d9f11"
#: What stands for each parameter of a path; the rest come from the stage.
_VALUES = {
    "provider": "corp",
    "pat_id": "2147483647",
    "session_id": "1",
    "md5": "0" * 32,
    "seq": "0",
    "domain": "example.org",
    "fqdn": "a.example.org",
    "grant": UNKNOWN_ID,
    "invitation": UNKNOWN_ID,
    "access_request": UNKNOWN_ID,
    "marker": "m1",
    "rule": "r1",
    "draft": UNKNOWN_ID,
    "cachekey": "k1",
    "year": "2026",
    "month": "01",
    "day": "01",
    "hour": "00",
    "week": "01",
    "file": "a.json",
    "userId": "ada",
    "replayId": UNKNOWN_ID,
    "recommendationId": UNKNOWN_ID,
    "alertId": UNKNOWN_ID,
}
_QUERIES = {
    **dict.fromkeys(("diffConfig", "diffRules", "diffAccount"), "?from=0&to=0"),
    **dict.fromkeys(
        (
            "getStaleReport",
            "getLeaksReport",
            "getSavings",
            "getTimeline",
            "listPrograms",
            "listStatements",
            "listUserActivity",
        ),
        "?from=2026-01-01&to=2026-01-02",
    ),
}


def bodies(stage: Stage) -> dict[str, Any]:
    """Bodies under which nothing but the caller's rights decides between 401 or 403 and anything else."""
    tenant = str(stage.tenant.pk)
    alert = {"name": "x", "kind": "leak", "channels": [{"type": "email", "to": TARGET}]}
    return {
        "replaceRoles": {"primary": "user"},
        "appendMemberships": [{"tenantId": tenant, "role": "member"}],
        "replaceMemberships": [],
        "createPersonalAccessToken": {"name": "x", "scopes": ["config:read"], "tenants": [tenant]},
        "acknowledgeTos": {"markdown": "# Terms"},
        "createTenant": {"accountId": str(stage.account.pk), "tenantName": "New"},
        "adoptAssessment": {"accountId": str(stage.account.pk)},
        "createAccount": {"name": "New", "owners": [TARGET]},
        "createInvitation": {"email": "new@example.org", "role": "member"},
        "createAlert": alert,
        "replaceAlert": alert,
        "testAlertChannels": alert,
        "createGrant": {
            "grantee": TARGET,
            "resource": "tenant",
            "resourceId": tenant,
            "permissions": ["config:read"],
        },
        "introspectToken": {"token": "x"},
        "registerDomain": {"domain": "example.org"},
        "replaceDraft": {"rules": []},
        "notifyLogs": {"prefixes": []},
        "dismissRecommendation": {"reason": "x"},
        "explainRequest": {"request": {}},
        "invalidateTables": {"tables": ["no.such"]},
        "previewTableInvalidation": {"tables": ["no.such"]},
        "parseWarehouse": {"text": "postgresql://db.example.org/sales"},
        "explainLoggedRequest": {"logId": "x", "day": "2026-01-01"},
        "setDigestPreference": {"frequency": "off"},
        "verifyDocument": {"document": "day", "period": "2026-01-01"},
    }


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation and where it is; ``on_self`` asks it about the caller instead of `TARGET`."""

    name: str
    method: str
    route: str
    on_self: bool = False

    @property
    def label(self) -> str:
        return f"{self.name} (own)" if self.on_self else self.name

    def path(self, stage: Stage, caller: Caller) -> str:
        values = {
            **_VALUES,
            "tenant": str(stage.tenant.pk),
            "account": str(stage.account.pk),
            "email": caller.email if self.on_self else TARGET,
        }
        filled = re.sub(r"<(?:\w+:)?(\w+)>", lambda match: values[match.group(1)], self.route)
        return f"/{filled}{_QUERIES.get(self.name, '')}"


def operations() -> list[Operation]:
    """Every operation of the service, those on users once more for the caller itself."""
    found = [Operation(route.operation, route.method, route.pattern) for route in routes()]
    own = [
        Operation(operation.name, operation.method, operation.route, on_self=True)
        for operation in found
        if POLICIES[operation.name].level in {Level.USER, Level.SELF} or "<email:" in operation.route
    ]
    return sorted({*found, *own}, key=lambda operation: operation.label)


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
