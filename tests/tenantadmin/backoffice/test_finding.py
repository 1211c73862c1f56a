"""Tenants, people and accounts are found in lists and by the search over everything."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from django.contrib.postgres.search import SearchVector
from django.db import connection
from django.urls import reverse

from accounts.admin.finding import search_fqdns, search_tenants, with_words
from accounts.models import Account, Domain, Fqdn, Tenant, User
from accounts.models.querysets import words_of
from tests import factories
from tests.admin.filling import to

if TYPE_CHECKING:
    from django.test import Client


def find(client: Client, term: str) -> list[tuple[str, str, str]]:
    """Return name, address and kind of what the palette finds."""
    return [
        (name, href, what) for name, href, what in client.get("/admin/search/", {"s": term}).json()["results"]
    ]


def addresses(client: Client, term: str) -> list[str]:
    return [href for _, href, _ in find(client, term)]


class TestFinding:
    """What a customer says leads to the tenant, by the list and by the palette."""

    @pytest.mark.parametrize("said", ["ware", "WAREHOUSE", "{id}", "db.acme.example", "Member@Example.org"])
    def test_a_tenant_is_found(self, staff: Client, tenant: Tenant, said: str) -> None:
        Fqdn.objects.create(name="db.acme.example", tenant_id=tenant.pk)
        term = said.format(id=tenant.pk)
        href = to("tenant", tenant)
        listed = staff.get(reverse("admin:accounts_tenant_changelist"), {"q": term}).content.decode()
        assert re.findall(r'field-name[^>]*><a href="([^"?]+)', listed) == [href]
        assert href in addresses(staff, term)

    @pytest.mark.parametrize("said", ["db.ac", "example", "member@ex", "bankole"])
    def test_the_list_finds_a_tenant_by_beginnings_of_its_members_and_fqdns(
        self, staff: Client, world: factories.World, said: str
    ) -> None:
        Fqdn.objects.create(name="db.acme.example", tenant_id=world.tenant.pk)
        User.objects.filter(pk=world.member.pk).update(display_name="Olu Bankole")
        listed = staff.get(reverse("admin:accounts_tenant_changelist"), {"q": said}).content.decode()
        assert to("tenant", world.tenant) in listed

    @pytest.mark.parametrize("said", ["house", "x@example.org", "a\0b", "%"])
    def test_no_other_is(self, staff: Client, tenant: Tenant, said: str) -> None:
        assert to("tenant", tenant) not in addresses(staff, said)

    @pytest.mark.parametrize(
        ("said", "name"), [("audit", "audit"), ("Terms", "terms"), ("review", "people"), ("sys", "system")]
    )
    def test_a_page_comes_first(self, staff: Client, said: str, name: str) -> None:
        assert addresses(staff, said)[0] == reverse(f"admin:{name}")

    def test_nothing_typed_lists_the_pages(self, staff: Client, support: Client, db: None) -> None:
        assert {what for _, _, what in find(support, " ")} == {"Page"}
        assert reverse("admin:audit") in addresses(support, "")

    @pytest.mark.parametrize(
        "said", ["new account", "publish terms", "engine ware", "plan acme", "edit ware"]
    )
    def test_acts_are_found_by_who_may_do_them(
        self, staff: Client, support: Client, world: factories.World, said: str
    ) -> None:
        done = ("/new/", "/edit/", "/engine/", "/change/", "to=rules%2Fedit")
        assert [href for href in addresses(staff, said) if href.endswith(done)]
        assert not [href for href in addresses(support, said) if href.endswith(done)]

    def test_the_guides_are_a_page_too(self, support: Client) -> None:
        assert addresses(support, "guid")[0] == "/docs"
        assert support.get("/admin/").content.decode().count('href="/docs"') == 1

    @pytest.mark.parametrize(
        ("said", "kind"),
        [
            *(("gold ret", "tenant"), ("RETAIL", "tenant"), ("{tenant:.8}", "tenant"), ("bankole", "person")),
            *(("trading", "account"), ("Co. TRAD", "account"), ("{account:.13}", "account")),
        ],
    )
    def test_words_of_a_name_and_the_start_of_an_id_are_found(
        self, staff: Client, world: factories.World, said: str, kind: str
    ) -> None:
        tenant = factories.make_tenant(name="Small retail, gold", account=world.account)
        Account.objects.filter(pk=world.account.pk).update(name="Acme trading co.")
        User.objects.filter(pk=world.member.pk).update(display_name="Olu Bankole")
        keys = {"tenant": tenant.pk, "account": world.account.pk, "person": world.member.pk}
        term = said.format(tenant=str(tenant.pk), account=str(world.account.pk))
        href = reverse(f"admin:{kind}", args=[keys[kind]])
        assert addresses(staff, term).count(href) == 1
        model = {"person": "user"}.get(kind, kind)
        listed = staff.get(reverse(f"admin:accounts_{model}_changelist"), {"q": term}).content.decode()
        assert href in re.findall(r'href="([^"?]+)', listed)

    @pytest.mark.parametrize("said", ["db.ac", "acme", "DB", "example db"])
    def test_an_fqdn_is_found_by_words(self, staff: Client, tenant: Tenant, said: str) -> None:
        Fqdn.objects.create(name="db.acme.example", tenant_id=tenant.pk)
        href = f"{reverse('admin:fqdns')}?q=db.acme.example"
        assert ("db.acme.example", href, "FQDN, claimed by Warehouse") in find(staff, said)

    @pytest.mark.parametrize(
        ("model", "said", "is_found"),
        [
            *((Fqdn, said, True) for said in ("warehouse", "RETAIL-ware", "db.ret", "example.com", "Acme")),
            *((Fqdn, said, False) for said in ("house", "warehouse other", "%", "-.")),
            *(
                (Domain, said, True)
                for said in ("warehouse", "retail-warehouse.example", "acm", "{account:.8}")
            ),
            *((Domain, said, False) for said in ("house", "warehouse other", "%", "-.")),
        ],
    )
    def test_lists_find_fqdns_and_domains_by_any_word(
        self, staff: Client, world: factories.World, model: type[Fqdn | Domain], said: str, is_found: bool
    ) -> None:
        name = "retail-warehouse.example.com"
        Fqdn.objects.create(name=f"db.{name}", tenant_id=world.tenant.pk)
        Domain.objects.create(account=world.account, name=name, challenge="x")
        tenant = world.stranger_tenant
        Fqdn.objects.create(name="db.other.test", tenant_id=tenant.pk)
        Domain.objects.create(account=tenant.account, name="other.test", challenge="x")
        Tenant.objects.filter(pk=world.tenant.pk).update(name="Acme 7")
        listed = staff.get(
            reverse(f"admin:accounts_{model._meta.model_name}_changelist"),
            {"q": said.format(account=str(world.account.pk))},
        ).context["cl"]
        assert [row.name.removeprefix("db.") for row in listed.result_list] == ([name] if is_found else [])

    def test_a_person_is_found_by_any_word_of_the_address(
        self, staff: Client, world: factories.World
    ) -> None:
        assert reverse("admin:person", args=[world.member.pk]) in addresses(staff, "example memb")

    def test_a_domain_is_found_by_words(self, staff: Client, world: factories.World) -> None:
        Domain.objects.create(account=world.account, name="data.acme.example", challenge="x")
        assert "Domain of Acme, not verified" in [what for _, _, what in find(staff, "acme")]

    @pytest.mark.parametrize(
        ("said", "name", "of"),
        [
            ("ware builds", "tenant-builds", "tenant"),
            ("offboard member", "person-offboard", "person"),
            ("plan acme", "account-change", "account"),
        ],
    )
    def test_an_act_is_found_with_whom_it_is_for(
        self, staff: Client, world: factories.World, said: str, name: str, of: str
    ) -> None:
        key = {"tenant": world.tenant.pk, "person": world.member.pk, "account": world.account.pk}[of]
        assert reverse(f"admin:{name}", args=[key]) in addresses(staff, said)

    @pytest.mark.parametrize("page", ["savings", "invalidate", "rules", "drafts"])
    def test_a_page_of_the_dashboard_is_found(self, staff: Client, tenant: Tenant, page: str) -> None:
        assert f"{reverse('admin:tenant-open', args=[tenant.pk])}?to={page}" in addresses(
            staff, f"{page} ware"
        )

    def test_the_audit_of_a_person_is_found(self, staff: Client, world: factories.World) -> None:
        User.objects.filter(pk=world.member.pk).update(display_name="Olu Bankole")
        href = f"{reverse('admin:audit')}?who=member%40example.org"
        assert ("Audit: member@example.org", href, "Page of a person") in find(staff, "audit olu")

    def test_an_act_alone_leads_to_the_list(self, staff: Client, tenant: Tenant) -> None:
        [(_, href, what), *_] = find(staff, "invalid")
        assert href == reverse("admin:accounts_tenant_changelist")
        assert what.startswith("Page of a tenant. Type its name too")

    def test_people_and_accounts_are_found(self, support: Client, tenant: Tenant) -> None:
        assert reverse("admin:account", args=[tenant.account_id]) in addresses(support, "acme")
        User.objects.filter(email="member@example.org").update(display_name="Olu Bankole")
        named = [(name, what) for name, _, what in find(support, "member@")]
        assert ("member@example.org", "Person Olu Bankole") in named

    def test_the_search_uses_indexes(self, db: None) -> None:
        account = factories.make_account()
        with connection.cursor() as cursor:
            cursor.execute(
                "INSERT INTO accounts_tenant (id, account_id, name, name_key, created_at, modified_at) "
                "SELECT gen_random_uuid(), %s, 'Tenant ' || n, 'tenant ' || n, now(), now() "
                "FROM generate_series(1, 20000) AS n",
                [account.pk],
            )
            cursor.execute("ANALYZE accounts_tenant")
        plan = Tenant.objects.filter(search_tenants("tenant 1234").condition()).explain()
        assert "Seq Scan on accounts_tenant" not in plan, plan
        assert "tenant_name_start" in plan
        plan = with_words(
            Tenant.objects.order_by(), "1234 ten", SearchVector("name", config="simple")
        ).explain()
        assert "tenant_words" in plan
        with connection.cursor() as cursor:
            cursor.execute(
                "INSERT INTO accounts_fqdn (name, tenant_id, claimed_at) "
                "SELECT 'db' || n || '.gateway.example', gen_random_uuid(), now() "
                "FROM generate_series(1, 20000) AS n"
            )
            cursor.execute("ANALYZE accounts_fqdn")
        plan = with_words(Fqdn.objects.order_by(), "db1234 gateway", words_of("name")).explain()
        assert "fqdn_words" in plan
        plan = Fqdn.objects.filter(search_fqdns("db1234.gateway").condition()).explain()
        assert "Seq Scan" not in plan, plan
        assert "Seq Scan" not in Tenant.objects.order_by("name", "id")[:100].explain()


class TestSuggestions:
    """What a field completes while one types."""

    @pytest.mark.parametrize(
        ("kind", "typed", "choices"),
        [
            ("people", "memb", ["member@example.org"]),
            ("people", "gone", []),
            ("tenants", "ware", ["Warehouse"]),
            ("accounts", "acm", ["Acme"]),
            ("accounts", " ", []),
        ],
    )
    def test_words_lead_to_the_value(
        self, support: Client, world: factories.World, kind: str, typed: str, choices: list[str]
    ) -> None:
        factories.make_user("gone@example.org", is_active=False)
        address = reverse("admin:suggestions", args=[kind])
        html = support.get(address, {"part": "choices", "owner": typed}).content.decode()
        assert re.findall(r'<option value="([^"]+)">', html) == choices

    def test_there_are_no_others(self, support: Client, db: None) -> None:
        assert support.get(reverse("admin:suggestions", args=["rules"])).status_code == 404

    def test_asking_for_them_is_no_activity(self, support: Client, db: None) -> None:
        html = support.get("/admin/people/").content.decode()
        assert 'hx-get="/admin/suggestions/people/?part=choices"' in html
