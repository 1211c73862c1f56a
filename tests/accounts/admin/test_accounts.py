"""The staff's pages of accounts, domains, FQDNs and the configuration of a tenant."""

from __future__ import annotations

import datetime as dt
import re
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from accounts.billing.domains import ChallengeNotMet, register_domain, verify_domain
from accounts.models import Account, Domain, Event, Fqdn, Revision, TenantConfig
from accounts.tenants.config import read_config
from accounts.tenants.errors import InUse
from tenantadmin.lib.core.timestamps import now
from tests import factories
from tests.admin.staff import page_text, require_roles, support_client, text_of

if TYPE_CHECKING:
    from django.test import Client


def page_of(account: Account) -> str:
    return reverse("admin:account", args=[account.pk])


def change_of(account: Account) -> str:
    return reverse("admin:account-change", args=[account.pk])


def domain_act(domain: Domain, act: str) -> str:
    return reverse(f"admin:domain-{act}", args=[domain.account_id, domain.name])


@pytest.fixture
def waiting(world: factories.World) -> Domain:
    return Domain.objects.create(account=world.account, name="acme.example", challenge="tenant-admin=abc")


def verified(account: Account, name: str) -> Domain:
    return Domain.objects.create(account=account, name=name, challenge="c", verified_at=now())


@pytest.mark.slow
def test_access_to_each_page(staff: Client, world: factories.World, waiting: Domain) -> None:
    looks = {
        "account": page_of(world.account),
        "fqdns": reverse("admin:fqdns"),
    }
    acts = {
        "change": change_of(world.account),
        "check": domain_act(waiting, "check"),
        "verify": domain_act(waiting, "verify"),
        "engine": reverse("admin:tenant-engine", args=[world.tenant.pk]),
        "restore": reverse("admin:tenant-undelete", args=[world.tenant.pk]),
    }
    require_roles(looks, acts, world, staff)
    waiting.refresh_from_db()
    assert waiting.verified_at is None
    assert not Event.objects.filter(kind="staff.acted").exists()


class TestAccount:
    def test_limits_stand_beside_use(self, staff: Client, world: factories.World, settings: Any) -> None:
        settings.PLAN_LIMITS = {
            **settings.PLAN_LIMITS,
            "team": {"tenants": 1, "fqdns": 2, "rules": 250},
        }
        for number in range(3):
            Fqdn.objects.create(name=f"f{number}.gateway.localhost", tenant_id=world.tenant.pk)
        Fqdn.objects.create(name="old.gateway.localhost", tenant_id=world.tenant.pk, released_at=now())
        text = page_text(staff, page_of(world.account))
        assert "Tenants 1 of 1 full" in text
        assert "Warehouse 3 of 2 over 0 of 250" in text
        assert "Owners owner@example.org" in text

    def test_of_many_tenants_the_first_are_listed_by_name(
        self, staff: Client, world: factories.World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        zebra = factories.make_tenant(world.account, "Zebra")
        Fqdn.objects.create(name="z.gateway.localhost", tenant_id=zebra.pk)
        text = page_text(staff, page_of(world.account))
        assert text.index("Zebra 1 of 10") < text.index("Warehouse 0 of 10")
        monkeypatch.setattr("accounts.admin.accounts._MANY", 1)
        text = page_text(staff, page_of(world.account))
        assert "the first by name" in text
        assert text.index("Warehouse 0 of 10") < text.index("Zebra 1 of 10")

    def test_empty_lists_have_a_message(self, staff: Client, db: None) -> None:
        text = page_text(staff, page_of(factories.make_account("Empty", plan="enterprise")))
        assert "This account has no owner. Name an owner" in text
        assert "The account has registered no domain." in text
        assert "The account has no live tenant." in text
        assert "No change is recorded." in text

    def test_support_is_offered_no_act(self, world: factories.World, waiting: Domain) -> None:
        html = support_client().get(page_of(world.account)).content.decode()
        assert change_of(world.account) not in html
        assert domain_act(waiting, "verify") not in html
        assert 'data-copy="tenant-admin=abc"' in html

    def test_a_deleted_one_is_shown_without_acts(self, staff: Client, world: factories.World) -> None:
        Account.objects.filter(pk=world.account.pk).update(deleted_at=now())
        html = staff.get(page_of(world.account)).content.decode()
        assert "deleted" in text_of(html)
        assert change_of(world.account) not in html
        assert staff.get(reverse("admin:account", args=[uuid4()])).status_code == 404

    def test_the_number_of_queries_does_not_grow(
        self, staff: Client, world: factories.World, waiting: Domain
    ) -> None:
        def count(address: str) -> int:
            with CaptureQueriesContext(connection) as captured:
                assert staff.get(address).status_code == 200
            return len(captured)

        before = count(page_of(world.account)), count(change_of(world.account))
        for number in range(4):
            factories.make_tenant(world.account, f"T{number}")
            verified(world.account, f"d{number}.example")
            world.account.owners.add(factories.make_user(f"o{number}@example.org"))
        assert (count(page_of(world.account)), count(change_of(world.account))) == before
        assert before[0] <= 14

    def test_home_the_list_and_the_tenant_lead_to_it(
        self, staff: Client, world: factories.World, waiting: Domain
    ) -> None:
        link = f'href="{page_of(world.account)}'
        assert f"{link}#domains" in staff.get("/admin/").content.decode()
        listed = staff.get(reverse("admin:accounts_account_changelist")).content.decode()
        assert link in listed
        assert link in staff.get(reverse("admin:tenant", args=[world.tenant.pk])).content.decode()


class TestChange:
    def form(self, client: Client, account: Account, **changes: Any) -> dict[str, Any]:
        html = client.get(change_of(account)).content.decode()
        etag = re.findall(r'name="etag" value="([^"]+)"', html)[0].replace("&quot;", '"')
        return {
            "name": "Acme",
            "plan": "enterprise",
            "owners": "owner@example.org",
            "billing_email": "",
            "etag": etag,
            "reason": "ticket 4",
            **changes,
        }

    def test_the_plan_changes_with_a_revision_and_an_event(
        self, staff: Client, world: factories.World
    ) -> None:
        answer = staff.post(change_of(world.account), self.form(staff, world.account), follow=True)
        assert "Plan changed from team to enterprise. Saved as revision 1." in text_of(
            answer.content.decode()
        )
        world.account.refresh_from_db()
        assert world.account.plan == "enterprise"
        revision = Revision.objects.get(kind="account", account_id=world.account.pk, seq=1)
        assert revision.document is not None
        assert (revision.user, revision.document["plan"]) == ("admin@example.org", "enterprise")
        event = Event.objects.get(kind="staff.acted")
        assert (event.account_id, event.reason) == (world.account.pk, "ticket 4")
        assert event.after == {"act": "account.changed", "seq": 1, "plan": "enterprise"}
        assert "admin@example.org changed the account “Plan” ticket 4" in page_text(
            staff, page_of(world.account)
        )

    def test_what_had_no_value_is_said(self, staff: Client, world: factories.World) -> None:
        changed = self.form(staff, world.account, plan="team", billing_email="pay@example.org")
        answer = staff.post(change_of(world.account), changed, follow=True)
        said = "Billing email changed from none to pay@example.org. Saved as revision 1."
        assert said in text_of(answer.content.decode())

    def test_an_account_without_owner_gets_one(self, staff: Client, world: factories.World) -> None:
        world.account.owners.clear()
        owners = "Stranger@example.org\nmember@example.org"
        answer = staff.post(change_of(world.account), self.form(staff, world.account, owners=owners))
        assert answer.status_code == 302
        emails = world.account.owners.order_by("email").values_list("email", flat=True)
        assert list(emails) == ["member@example.org", "stranger@example.org"]

    @pytest.mark.parametrize(
        ("changes", "status", "said"),
        [
            ({"reason": ""}, 400, "This field is required."),
            ({"plan": "gold"}, 400, "Select a valid choice."),
            ({"owners": "unknown@example.org"}, 400, "There is no user 'unknown@example.org'."),
            ({"owners": " \n"}, 400, "This field is required."),
            ({"etag": '"old"'}, 409, "The document changed in the meantime."),
        ],
    )
    def test_errors_are_shown_and_nothing_is_written(
        self, staff: Client, world: factories.World, changes: dict[str, str], status: int, said: str
    ) -> None:
        answer = staff.post(change_of(world.account), self.form(staff, world.account, **changes))
        assert answer.status_code == status
        assert said in text_of(answer.content.decode())
        world.account.refresh_from_db()
        assert (world.account.plan, world.account.seq) == ("team", 0)
        assert not Event.objects.filter(kind="staff.acted").exists()

    def test_it_lists_limits_that_another_plan_exceeds(
        self, staff: Client, world: factories.World, settings: Any
    ) -> None:
        settings.PLAN_LIMITS = {
            "free": {"tenants": 1, "fqdns": 0, "rules": 0},
            "team": {"tenants": 10, "fqdns": 10, "rules": 250},
            "enterprise": {"tenants": None, "fqdns": None, "rules": None},
        }
        factories.make_tenant(world.account, "Second")
        Fqdn.objects.create(name="f.gateway.localhost", tenant_id=world.tenant.pk)
        text = page_text(staff, change_of(world.account))
        assert (
            "free: 1 tenant, with 0 FQDNs and 0 rules each. "
            "Over the limit now: tenants (2), FQDNs of Warehouse (1) "
            "team: 10 tenants, with 10 FQDNs and 250 rules each "
            "enterprise: any number of tenants, with any number of FQDNs and any number of rules each"
        ) in text


class TestDomain:
    def test_a_domain_is_verified_by_hand(
        self, staff: Client, world: factories.World, waiting: Domain
    ) -> None:
        address = domain_act(waiting, "verify")
        text = page_text(staff, address)
        assert "the DNS is not asked. This is the TXT record that the owner was asked for: _tenant-ad" in text
        assert "_tenant-admin-challenge.acme.example Copy name tenant-admin=abc" in text
        answer = staff.post(address, {"reason": "call with the owner"}, follow=True)
        assert "acme.example is verified." in text_of(answer.content.decode())
        waiting.refresh_from_db()
        assert waiting.verified_at is not None
        events = Event.objects.filter(kind__in=["domain.verified", "staff.acted"]).order_by("pk")
        assert [(event.kind, event.reason, event.after) for event in events] == [
            ("domain.verified", "call with the owner", {"byHand": True}),
            (
                "staff.acted",
                "call with the owner",
                {"act": "domain.verified", "domain": "acme.example"},
            ),
        ]
        told = "admin@example.org verified the domain acme.example by hand call with the owner"
        assert page_text(staff, page_of(waiting.account)).count(told) == 1
        assert "The domain is verified already." in page_text(staff, address, status=409)

    def test_the_dns_is_asked_now(
        self, staff: Client, waiting: Domain, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse(_challenge: object, **_: object) -> None:
            raise ChallengeNotMet("The DNS has no TXT record.")

        address = domain_act(waiting, "check")
        monkeypatch.setattr("accounts.billing.domains.require_challenge", refuse)
        refused = staff.post(address, {"reason": "ticket"})
        assert refused.status_code == 400
        html = refused.content.decode()
        assert "The DNS has no TXT record." in text_of(html)
        assert f'href="{domain_act(waiting, "verify")}"' in html
        assert not Event.objects.filter(kind="staff.acted").exists()
        monkeypatch.setattr("accounts.billing.domains.require_challenge", lambda *_, **__: None)
        assert staff.post(address, {"reason": "ticket"}).status_code == 302
        assert Event.objects.get(kind="domain.verified").after == {"byHand": False}

    def test_one_that_another_account_has_cannot_be_verified(
        self, staff: Client, world: factories.World, waiting: Domain
    ) -> None:
        verified(world.stranger_tenant.account, "acme.example")
        html = staff.get(page_of(world.account)).content.decode()
        assert "It is verified for the account Elsewhere" in text_of(html)
        assert domain_act(waiting, "verify") not in html
        assert staff.post(domain_act(waiting, "verify"), {"reason": "x"}).status_code == 409

    def test_an_unknown_one(self, staff: Client, world: factories.World) -> None:
        address = reverse("admin:domain-verify", args=[world.account.pk, "none.example"])
        assert "The account has no such domain." in page_text(staff, address, status=404)


class TestFqdn:
    def ask(self, client: Client, name: str, *, status: int = 200, **query: Any) -> str:
        return page_text(client, reverse("admin:fqdns"), status=status, q=name, **query)

    def test_a_claimed_one_leads_to_its_tenant(self, staff: Client, world: factories.World) -> None:
        Fqdn.objects.create(name="db.acme.example", tenant_id=world.tenant.pk)
        text = self.ask(staff, "DB.acme.example")
        assert re.search(r"claimed since .* by Warehouse of Acme \. No other tenant can claim it\.", text)

    def test_a_released_one_is_kept_until_its_tombstone_ends(
        self, staff: Client, world: factories.World, settings: Any
    ) -> None:
        settings.TOMBSTONE_LIFETIME = dt.timedelta(days=30)
        at = dt.datetime(2026, 3, 1, 12, tzinfo=dt.UTC)
        row = Fqdn.objects.create(name="db.acme.example", tenant_id=world.tenant.pk, released_at=now())
        assert "it is reserved for Warehouse of Acme , and no other tenant can claim it." in self.ask(
            staff, "db.acme.example"
        )
        Fqdn.objects.filter(pk=row.pk).update(released_at=at)
        assert "not claimed No tenant holds it." in self.ask(staff, "db.acme.example")
        verified(world.account, "acme.example")
        assert "Only tenants of Acme may claim it." in self.ask(staff, "db.acme.example")

    def test_a_tenant_that_is_gone(self, staff: Client, db: None) -> None:
        Fqdn.objects.create(name="db.acme.example", tenant_id=uuid4())
        assert "a tenant that is gone" in self.ask(staff, "db.acme.example")

    @pytest.mark.parametrize("name", ["nope", "a b.example", "*.example.org", "\0", "1.2.3.4"])
    def test_an_invalid_host_name_is_reported(self, staff: Client, db: None, name: str) -> None:
        answer = staff.get(reverse("admin:fqdns"), {"q": name})
        assert answer.status_code == 200
        assert ('role="alert"' in answer.content.decode()) == (name != "\0")

    @pytest.mark.parametrize("words", ["warehouse", "ware retail", "retail.example", "DB.retail-warehouse"])
    def test_words_lead_to_fqdns(self, staff: Client, world: factories.World, words: str) -> None:
        Fqdn.objects.create(name="db.retail-warehouse.example", tenant_id=world.tenant.pk, released_at=now())
        text = self.ask(staff, words)
        assert f"FQDNs with “{words}” db.retail-warehouse.example released" in text

    def test_why_a_claim_would_be_refused(self, staff: Client, world: factories.World, settings: Any) -> None:
        Fqdn.objects.create(name="db.acme.example", tenant_id=world.tenant.pk)
        other = str(world.stranger_tenant.pk)
        text = self.ask(staff, "db.acme.example", tenant=other)
        assert "Could Other claim it? no" in text
        assert "Another tenant holds it." in text
        verified(world.stranger_tenant.account, "acme.example")
        Fqdn.objects.update(released_at=now())
        text = self.ask(staff, "db.acme.example", tenant=other)
        assert "Could Other claim it? no Another tenant released it" in text
        settings.PLAN_LIMITS = {**settings.PLAN_LIMITS, "team": {"tenants": 1, "fqdns": 0, "rules": 1}}
        assert "plan_limit_exceeded" in self.ask(staff, "db.acme.example", tenant="Other")

    def test_the_answer_matches_a_write(self, staff: Client, world: factories.World) -> None:
        name = "new.gateway.localhost"
        assert "Could Warehouse claim it? yes The claim would succeed." in self.ask(
            staff, name, tenant="warehouse"
        )
        document = read_config(world.tenant.pk).document
        TenantConfig.objects.filter(pk=world.tenant.pk).update(document={**document, "fqdns": [name]})
        Fqdn.objects.create(name=name, tenant_id=world.tenant.pk)
        assert "It is this tenant's own already." in self.ask(staff, name, tenant="warehouse")

    def test_a_tenant_that_is_not_clear(self, staff: Client, world: factories.World) -> None:
        factories.make_tenant(world.account, "Retail warehouse")
        text = self.ask(staff, "a.gateway.localhost", tenant="warehouse")
        assert "More than one tenant is meant. Choose: Retail warehouse of Acme Warehouse of Acme" in text
        assert "Could Retail warehouse claim it?" in self.ask(staff, "a.gateway.localhost", tenant="retail")
        text = self.ask(staff, "a.gateway.localhost", tenant="zzz")
        assert "No tenant has “zzz” at the beginning of a word of its name, of an FQDN, or of" in text

    def test_a_domain_of_another_account_is_not_to_be_verified(
        self, staff: Client, world: factories.World
    ) -> None:
        verified(world.account, "acme.example")
        text = self.ask(staff, "db.acme.example", tenant=str(world.stranger_tenant.pk))
        assert "Could Other claim it? no Its domain belongs to Acme. fqdn-outside-domains" in text
        assert "Verify its domain first" in self.ask(
            staff, "db.elsewhere.example", tenant=str(world.stranger_tenant.pk)
        )

    def test_who_registered_a_domain_that_is_not_verified(
        self, staff: Client, world: factories.World
    ) -> None:
        Domain.objects.create(account=world.account, name="acme.example", challenge="c")
        other = world.stranger_tenant.account
        race = "The first account to verify a domain has it, and no other account can verify it then."
        text = self.ask(staff, "db.acme.example", tenant=str(world.tenant.pk))
        assert "Its account Acme has registered acme.example, but not verified it. Verify it first." in text
        assert "Registered by others" not in text
        text = self.ask(staff, "db.acme.example", tenant=str(world.stranger_tenant.pk))
        assert (
            f"Its account {other.name} has registered no domain of this name, but may register and verify "
            f"one. Registered by others, but not verified: Acme (acme.example). {race}"
        ) in text
        # What the page says is true: both register the name, and the first to verify has it.
        register_domain(account_id=other.pk, name="acme.example", actor="x")
        by_hand: dict[str, Any] = {"by_hand": True, "may_verify_by_hand": True, "actor": "x"}
        verify_domain(account_id=other.pk, name="acme.example", **by_hand)
        with pytest.raises(InUse):
            verify_domain(account_id=world.account.pk, name="acme.example", **by_hand)

    def test_a_deleted_tenant_claims_nothing(self, staff: Client, world: factories.World) -> None:
        world.tenant.deleted_at = now()
        world.tenant.save()
        text = self.ask(staff, "a.gateway.localhost", tenant=str(world.tenant.pk))
        assert "no The tenant is deleted." in text


def test_the_engine_of_queries_is_chosen_with_a_reason(staff: Client, world: factories.World) -> None:
    address = reverse("admin:tenant-engine", args=[world.tenant.pk])
    staff.post(address, {"engine": "auto"})
    assert TenantConfig.objects.get(pk=world.tenant.pk).sql_engine == "duckdb"
    answer = staff.post(address, {"engine": "auto", "reason": "ticket 8"}, follow=True)
    assert "The engine of queries is auto now." in answer.content.decode()
    config = TenantConfig.objects.get(pk=world.tenant.pk)
    assert (config.sql_engine, config.seq) == ("auto", 0)
    event = Event.objects.get(kind="staff.acted")
    after = event.after or {}
    assert (event.reason, after["act"]) == ("ticket 8", "engine.chosen")
    assert (after["engine"], after["engineBefore"]) == ("auto", "duckdb")
