"""Two who want the same thing at the same moment. Contract: Errors (409)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from uuid import UUID

import pytest

from accounts.models import Fqdn, Revision, Tenant
from accounts.serializers.tenants import parse_config
from accounts.tenants.config import read_config
from accounts.tenants.errors import FqdnConflict, TenantNameConflict, TenantNotFound
from accounts.tenants.lifecycle import create_tenant, delete_tenant, restore_config
from tenantadmin.lib.core.errors import Conflict, PlanLimitExceeded
from tests import factories
from tests.accounts.support import configure
from tests.racing import all_at_once, run_behind

pytestmark = pytest.mark.django_db(transaction=True)

ACTOR = "owner@example.org"
NAME = "wanted.gateway.localhost"


def create(account_id: UUID, name: str, *fqdns: str) -> object:
    document = {"tenantName": name, "fqdns": list(fqdns)}
    return create_tenant(account_id=account_id, document=document, actor=ACTOR)


@pytest.mark.parametrize("commits", [True, False])
def test_a_writer_that_validated_an_older_state_gets_its_409_when_that_is_gone(
    world: factories.World, commits: bool
) -> None:
    first = partial(configure, world.tenant.pk, labels={"by": "first"})
    second = partial(configure, world.tenant.pk, labels={"by": "second"})
    run_behind(first, second, commits=commits, refusal=Conflict)
    stored = read_config(world.tenant.pk)
    assert (stored.seq, stored.document["labels"]) == (1, {"by": "first" if commits else "second"})
    history = Revision.objects.filter(tenant_id=world.tenant.pk, kind="config").order_by("seq")
    assert [row.seq for row in history] == [0, 1]


@pytest.mark.parametrize("commits", [True, False])
def test_a_configuration_that_changes_during_its_restore(world: factories.World, commits: bool) -> None:
    configure(world.tenant.pk, labels={"by": "first"})
    restore = partial(restore_config, tenant_id=world.tenant.pk, seq=0, parse=parse_config, actor=ACTOR)
    run_behind(
        partial(configure, world.tenant.pk, labels={"by": "second"}),
        restore,
        commits=commits,
        refusal=Conflict,
    )
    stored = read_config(world.tenant.pk)
    assert (stored.seq, stored.document["labels"]) == (2, {"by": "second"} if commits else {})


@pytest.mark.parametrize("commits", [True, False])
def test_two_tenants_that_race_for_one_fqdn(world: factories.World, commits: bool) -> None:
    run_behind(
        partial(configure, world.tenant.pk, fqdns=[NAME]),
        partial(configure, world.stranger_tenant.pk, fqdns=[NAME]),
        commits=commits,
        refusal=FqdnConflict,
    )
    winner = world.tenant.pk if commits else world.stranger_tenant.pk
    assert Fqdn.objects.get(name=NAME).tenant_id == winner
    assert read_config(world.stranger_tenant.pk).seq == (0 if commits else 1)


@pytest.mark.parametrize("commits", [True, False])
def test_two_that_race_for_one_name(world: factories.World, commits: bool) -> None:
    run_behind(
        partial(configure, world.tenant.pk, name="Wanted"),
        partial(create, world.account.pk, "wanted"),
        commits=commits,
        refusal=TenantNameConflict,
    )
    assert Tenant.objects.filter(account=world.account, name_key="wanted").count() == 1


def test_the_last_place_of_a_plan_is_taken_once(world: factories.World) -> None:
    account = factories.make_account("Free", plan="free")

    def attempt(number: int) -> bool:
        try:
            create(account.pk, f"T{number}")
        except PlanLimitExceeded:
            return False
        return True

    won = all_at_once([partial(attempt, number) for number in range(8)])
    assert sorted(won) == [False] * 7 + [True]
    assert Tenant.objects.filter(account=account).count() == 1


def test_two_tenants_that_swap_their_names_never_stop_each_other(world: factories.World) -> None:
    one, other = "one.gateway.localhost", "two.gateway.localhost"
    configure(world.tenant.pk, fqdns=[one])
    configure(world.stranger_tenant.pk, fqdns=[other])

    def attempt(tenant_id: UUID, name: str) -> str:
        try:
            configure(tenant_id, fqdns=[name])
        except FqdnConflict:
            return "conflict"
        return "done"

    results = all_at_once(
        [partial(attempt, world.tenant.pk, other), partial(attempt, world.stranger_tenant.pk, one)]
    )
    # A released FQDN stays reserved for its tenant, so neither tenant may take the other's.
    assert results == ["conflict", "conflict"]
    assert read_config(world.tenant.pk).document["fqdns"] == [one]


@pytest.mark.parametrize("commits", [True, False])
def test_a_write_that_meets_a_deletion_finds_nothing(world: factories.World, commits: bool) -> None:
    run_behind(
        partial(delete_tenant, tenant_id=world.tenant.pk, actor=ACTOR),
        partial(configure, world.tenant.pk),
        commits=commits,
        refusal=TenantNotFound,
    )
    history = Revision.objects.filter(tenant_id=world.tenant.pk, kind="config").order_by("seq")
    assert [row.action for row in history] == ["create", "delete" if commits else "update"]


def test_many_requests_for_one_new_name(world: factories.World) -> None:
    account = factories.make_account("Big", plan="enterprise")

    def attempt(work: Callable[[], object]) -> bool:
        try:
            work()
        except (FqdnConflict, TenantNameConflict):
            return False
        return True

    by_fqdn = [partial(attempt, partial(create, account.pk, f"T{n}", NAME)) for n in range(8)]
    assert sum(all_at_once(by_fqdn)) == 1
    by_name = [partial(attempt, partial(create, account.pk, "Same")) for _ in range(8)]
    assert sum(all_at_once(by_name)) == 1
