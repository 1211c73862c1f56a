"""Every operation, as a platform admin whose session has proven more or less. Contract: Authentication.

The same table as without a required second factor: a session without one has the rights of a user, and the
acts of `PROVEN` need a fresh proof and a reason.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from django.db import transaction

from accounts.models import User
from tests import factories
from tests.authz.callers import TARGET, Caller, Stage, set_stage
from tests.authz.expected import EXPECTED, PROVEN
from tests.authz.sending import PROTECTED, REFUSED, send

if TYPE_CHECKING:
    from tests.authz.sending import Operation

pytestmark = pytest.mark.django_db
ADMIN = "platform admin"
REASON = {"X-Reason": "ticket%2042%3A%20l%C3%B6schen"}


@pytest.fixture(autouse=True)
def _required(settings: Any) -> None:
    settings.STAFF_SECOND_FACTOR = True


@pytest.fixture(scope="module")
def stage(django_db_setup: None, django_db_blocker: Any) -> Iterator[Stage]:
    """The stage of the matrix, and the platform admin on three sessions."""
    with django_db_blocker.unblock(), transaction.atomic():
        made = set_stage()
        admin = User.objects.get(email=made.callers[ADMIN].email)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("django.conf.settings.STAFF_SECOND_FACTOR", True)
            sessions = {
                "by link": factories.sign_in(admin),
                "stale": factories.sign_in(admin, proven_at=time.time() - 901),
                # The whole module takes less than these minutes.
                "fresh": factories.sign_in(admin, proven_at=time.time()),
            }
        callers = {name: Caller(admin.email, token) for name, token in sessions.items()}
        yield replace(made, callers=made.callers | callers)
        transaction.set_rollback(True)


def body_of(operation: Operation, stage: Stage) -> Any:
    """Return a body that changes something, where the body of the matrix changes nothing."""
    if operation.name == "appendMemberships":
        elsewhere = next(
            str(tenant.pk) for tenant in stage.account.tenants.model.objects.exclude(pk=stage.tenant.pk)
        )
        return [{"tenantId": elsewhere, "role": "member"}]
    if operation.name == "replaceAccount":
        return {"name": "Acme", "owners": [TARGET]}
    if operation.label == "replaceUser":
        return {"roles": {"primary": "guest", "scopes": []}}
    return None


def outcome(operation: Operation, stage: Stage, caller: str, headers: dict[str, str]) -> bool | str:
    """Return True if a caller is let through, else the code of the error."""
    answer = send(operation, stage, caller, body=body_of(operation, stage), headers=headers)
    return answer.json()["error"] if answer.status_code in REFUSED else True


@pytest.mark.parametrize("operation", PROTECTED, ids=lambda operation: operation.label)
def test_a_session_has_the_rights_that_it_has_proven(operation: Operation, stage: Stage) -> None:
    label = operation.label
    is_admins = ADMIN in EXPECTED[label]
    by_link = outcome(operation, stage, "by link", REASON)
    assert (by_link is True) == ("user" in EXPECTED[label])
    if is_admins and by_link is not True:
        assert by_link == "second_factor_required"

    fresh = outcome(operation, stage, "fresh", REASON)
    assert fresh == (True if is_admins else "forbidden")
    proven = "second_factor_required" if label in PROVEN else True
    expected = proven if is_admins else "forbidden"
    assert outcome(operation, stage, "stale", REASON) == expected
    assert outcome(operation, stage, "fresh", {}) == expected


@pytest.mark.parametrize("operation", PROTECTED, ids=lambda operation: operation.label)
def test_a_personal_access_token_proves_nothing(operation: Operation, stage: Stage) -> None:
    is_allowed = "wildcard PAT" in EXPECTED[operation.label]
    needs_proof = operation.label in PROVEN | {"replaceMemberships (own)"}
    answer = outcome(operation, stage, "wildcard PAT", REASON)
    assert (answer is True) == (is_allowed and not needs_proof)
    assert (answer == "second_factor_required") == (is_allowed and needs_proof)


@pytest.mark.parametrize("operation", PROTECTED, ids=lambda operation: operation.label)
def test_owners_and_members_need_no_second_factor(operation: Operation, stage: Stage) -> None:
    for caller in ("owner", "member", "user"):
        let_through = outcome(operation, stage, caller, {}) is True
        expected = caller in EXPECTED[operation.label]
        if operation.name == "appendMemberships":
            expected = False  # of a tenant that the owner does not own
        assert let_through == expected, caller
