"""Who can read a tenant changes in one function: `change_readers` (`accounts.readers`). Docs: security.md."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
from django.conf import settings
from django.db import connection, transaction

from accounts.access.scopes import Level
from accounts.models import Membership, PermissionGrant
from tenantadmin.lib.core.timestamps import now
from tests.authz.callers import TARGET, Stage
from tests.authz.sending import OPERATIONS, POLICIES, send
from tests.rights_guard import READERS, require_readers, rights_written

if TYPE_CHECKING:
    from tests.authz.sending import Operation

pytestmark = pytest.mark.django_db

MEMBERSHIP: Final = frozenset({"membership"})
OWNERS: Final = frozenset({"account_owners"})
GRANT: Final = frozenset({"permissiongrant"})
ROLE: Final = frozenset({"user"})
#: Which operations write which rights, by hand: a new one is looked at.
WRITES: Final = {
    # No caller adds itself.
    "appendMemberships": MEMBERSHIP,
    **dict.fromkeys(("replaceMemberships", "replaceMemberships (own)"), MEMBERSHIP),
    **dict.fromkeys(("createTenant", "acceptInvitation (own)"), MEMBERSHIP),
    **dict.fromkeys(("replaceUser", "replaceRoles", "mergeRoles"), ROLE),
    **dict.fromkeys(("replaceUser (own)", "replaceRoles (own)", "mergeRoles (own)"), ROLE),
    **dict.fromkeys(("deleteUser", "deleteUser (own)"), ROLE | MEMBERSHIP | OWNERS | GRANT),
    **dict.fromkeys(("createGrant", "revokeGrant"), GRANT),
    **dict.fromkeys(("createAccount", "replaceAccount"), OWNERS),
    "createPersonalAccessToken (own)": frozenset({"personalaccesstoken"}),
}
CALLERS: Final = ("platform admin", "owner", "user", "wildcard PAT")
GUEST: Final = {"primary": "guest", "scopes": []}


def body_of(operation: Operation, stage: Stage) -> Any:
    """Return a body that changes rights, where the body of the matrix changes nothing."""
    elsewhere = stage.account.tenants.model.objects.exclude(pk=stage.tenant.pk).get()
    return {
        "appendMemberships": [{"tenantId": str(elsewhere.pk), "role": "member"}],
        "replaceUser": {"roles": GUEST},
        "replaceRoles": GUEST,
        "mergeRoles": {"primary": "guest"},
        "replaceAccount": {"name": "Acme", "owners": [TARGET]},
        "createPersonalAccessToken": {"name": "x", "scopes": ["config:read"], "tenants": ["*"]},
    }.get(operation.name)


@pytest.mark.parametrize(
    "operation",
    [
        operation
        for operation in OPERATIONS
        if operation.method != "GET" and POLICIES[operation.name].level is not Level.PUBLIC
    ],
    ids=lambda operation: operation.label,
)
def test_an_operation_writes_rights_only_there(operation: Operation, stage: Stage) -> None:
    written: set[str] = set()

    def note(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if table := rights_written(sql, params):
            written.add(table)
        return execute(sql, params, many, context)

    with transaction.atomic(), connection.execute_wrapper(note):
        # Something to answer and to revoke, at the ids of the requests.
        answers = [send(operation, stage, caller, body=body_of(operation, stage)) for caller in CALLERS]
        transaction.set_rollback(True)
    # A write past the function is a 500 (tests/conftest.py).
    assert not [answer for answer in answers if answer.status_code == 500]
    expected = WRITES.get(operation.label, frozenset())
    assert written <= expected, "Name it here, after a look at who is asked and told."
    if operation.label not in {"revokeGrant", "acceptInvitation (own)"}:  # of unknown ids
        assert bool(written) == bool(expected)


def test_a_write_past_the_function_fails(stage: Stage) -> None:
    target = Membership.objects.get(user__email=TARGET)
    grants = PermissionGrant.objects.filter(grantee__email="grant@example.org")
    attempts: list[Callable[[], Any]] = [
        target.save,
        lambda: Membership.objects.filter(pk=target.pk).update(role="owner"),
        lambda: Membership.objects.bulk_create([Membership(user=target.user, tenant=target.tenant)]),
        lambda: stage.account.owners.add(target.user),
        lambda: grants.update(expires_at=now()),
        target.user.save,
        target.user.delete,
    ]
    with transaction.atomic(), connection.execute_wrapper(require_readers):
        for attempt in attempts:
            with (
                pytest.raises(AssertionError, match="is not written by"),
                transaction.atomic(),
            ):
                attempt()
        transaction.set_rollback(True)


#: Methods that write rows, and what rows of rights are called.
METHODS: Final = {
    *("add", "bulk_create", "bulk_update", "clear", "create", "delete", "get_or_create", "remove", "set"),
    *("update", "update_or_create"),
}
ROWS: Final = ("Membership.objects", "memberships", ".owners", "PermissionGrant.objects", ".grants.")


def test_no_other_module_writes_them() -> None:
    """Also commands and jobs, which no request runs."""
    found = []
    for app in ("accounts", "analytics", "logs", "rules", "tosapp", "tenantadmin"):
        for path in Path(settings.BASE_DIR, app).rglob("*.py"):
            if "migrations" in path.parts or path.parent == READERS:
                continue
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                    rows = ast.unparse(node.func.value)
                    if node.func.attr in METHODS and any(row in f"{rows}." for row in ROWS):
                        found.append(f"{path}: {ast.unparse(node)}")
    assert not found
