"""The migration that brings stored addresses into one form. Contract: User."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest
from django.apps import apps

from accounts.access.assurance import Assurance
from accounts.access.credentials import create_refresh_token
from accounts.models import Account, Event, MagicLink, Membership, User
from tenantadmin.lib.core.timestamps import now
from tests import factories

pytestmark = pytest.mark.django_db
BUECHER = "zoe@xn--bcher-kva.example"


def migrate() -> None:
    module: Any = import_module("accounts.migrations.0023_canonical_addresses")
    module.normalize_addresses(apps, None)


def stored(email: str) -> User:
    return User.objects.get(email=email)


def test_an_address_gets_its_form_and_keeps_rights_and_sessions(world: factories.World) -> None:
    zoe = factories.make_user("zoe@bücher.example")
    Membership.objects.create(user=zoe, tenant=world.tenant, role="admin")
    session, _ = create_refresh_token(user=zoe, assurance=Assurance(amr={"link": 1.0}))
    account = factories.make_account("Books", owners=[zoe])
    Account.objects.filter(pk=account.pk).update(billing_email="zoe@bücher.example")
    MagicLink.objects.create(digest=b"1" * 32, email="zoe@bücher.example", expires_at=now())
    MagicLink.objects.create(digest=b"2" * 32, email="ada@example.org", expires_at=now())
    for _ in range(2):
        migrate()
    moved = stored(BUECHER)
    assert (moved.pk, moved.is_active, moved.epoch) == (zoe.pk, True, zoe.epoch)
    assert [(it.tenant, it.role) for it in moved.memberships.all()] == [(world.tenant, "admin")]
    session.refresh_from_db()
    assert session.revoked_at is None
    assert Account.objects.get(pk=account.pk).billing_email == BUECHER
    assert [link.email for link in MagicLink.objects.all()] == ["ada@example.org"]
    event = Event.objects.get(kind="user.changed")
    assert (event.actor, event.subject, event.before) == (
        "migration of addresses",
        BUECHER,
        {"email": "zoe@bücher.example"},
    )


def test_two_users_of_one_mailbox_become_one(world: factories.World) -> None:
    double, zoe = factories.make_user("zoe@bücher.example"), factories.make_user(BUECHER)
    other = factories.make_tenant(world.account, "Second", owner=double)
    Membership.objects.create(user=double, tenant=world.tenant, role="owner")
    Membership.objects.create(user=zoe, tenant=world.tenant, role="member")
    account = factories.make_account("Books", owners=[double])
    session, _ = create_refresh_token(user=double, assurance=Assurance(amr={"link": 1.0}))
    migrate()
    assert {(it.tenant, it.role) for it in stored(BUECHER).memberships.all()} == {
        (world.tenant, "member"),
        (other, "owner"),
    }
    assert list(account.owners.all()) == [zoe]
    left = User.objects.get(pk=double.pk)
    assert (left.email, left.is_active) == (f"zoe.duplicate-{double.pk}@xn--bcher-kva.example", False)
    assert not left.memberships.exists()
    session.refresh_from_db()
    assert session.revoked_at is not None


@pytest.mark.parametrize(
    "fields", [{"role": "admin"}, {"is_support": True}, {"is_active": False}, {"identity_subject": "7"}]
)
@pytest.mark.parametrize("which", ["old", "new"])
def test_rights_do_not_move_where_that_could_give_too_much(
    world: factories.World, fields: dict[str, Any], which: str
) -> None:
    double = factories.make_user("zoe@bücher.example", **(fields if which == "old" else {}))
    zoe = factories.make_user(BUECHER, **(fields if which == "new" else {}))
    Membership.objects.create(user=double, tenant=world.tenant, role="owner")
    migrate()
    assert not zoe.memberships.exists()
    left = User.objects.get(pk=double.pk)
    assert (left.is_active, left.memberships.count()) == (False, 1)


def test_a_user_whose_links_went_to_another_domain_is_deactivated(world: factories.World) -> None:
    zoe = factories.make_user("zoe@straße.example")
    other = factories.make_user("zoe@strasse.example")
    Membership.objects.create(user=zoe, tenant=world.tenant, role="member")
    migrate()
    moved = stored("zoe@xn--strae-oqa.example")
    assert (moved.pk, moved.is_active) == (zoe.pk, False)
    assert moved.epoch != zoe.epoch
    other.refresh_from_db()
    assert (other.email, other.is_active, other.memberships.count()) == ("zoe@strasse.example", True, 0)


def test_what_has_no_form_stays() -> None:
    factories.make_user("root@[127.0.0.1]")
    migrate()
    assert stored("root@[127.0.0.1]").is_active
    assert not Event.objects.exists()
