"""Domains and FQDNs, verified against a real name server. Contract: domains, FQDNs."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest
from celery.exceptions import Retry
from dnslib import QTYPE, RR, TXT, DNSRecord
from dnslib.server import BaseResolver, DNSServer

from accounts.models import Domain, Event, Fqdn
from accounts.tasks import check_domain
from accounts.tenants.fqdns import remove_old_fqdns
from tenantadmin.lib.core.timestamps import format_timestamp, now
from tests import factories
from tests.accounts.support import configure
from tests.conftest import ApiClient
from tests.streams import body_of

pytestmark = pytest.mark.django_db


class Zone(BaseResolver):  # type: ignore[misc]  # dnslib has no types
    """A name server's data: TXT records by name; any other name does not exist."""

    def __init__(self) -> None:
        self.records: dict[str, list[str]] = {}
        #: How long each answer takes.
        self.seconds = 0.0

    def resolve(self, request: DNSRecord, handler: Any) -> DNSRecord:
        time.sleep(self.seconds)
        reply = request.reply()
        name = str(request.q.qname).rstrip(".").lower()
        for text in self.records.get(name, []):
            reply.add_answer(RR(request.q.qname, QTYPE.TXT, ttl=1, rdata=TXT(text)))
        if name not in self.records:
            reply.header.rcode = 3
        return reply


@pytest.fixture
def zone(settings: Any) -> Iterator[Zone]:
    data = Zone()
    server = DNSServer(data, address="127.0.0.1", port=0, logger=_Silent())
    settings.DNS_NAMESERVERS = ["127.0.0.1"]
    settings.DNS_PORT = server.server.server_address[1]
    settings.DNS_TIMEOUT_SECONDS = 2.0
    server.start_thread()
    yield data
    server.stop()
    server.server.server_close()


class _Silent:
    def __getattr__(self, name: str) -> Any:
        return lambda *_: None


@pytest.fixture
def owner(world: factories.World) -> ApiClient:
    return ApiClient(factories.sign_in(world.owner))


@pytest.fixture
def address(world: factories.World) -> str:
    return f"/config/accounts/{world.account.pk}/domains"


def test_a_registered_domain_waits_for_its_challenge(
    owner: ApiClient, address: str, world: factories.World
) -> None:
    answer = owner.post(address, {"domain": "Example.ORG"})
    assert answer.status_code == 201, answer.content
    body = answer.json()
    assert body == {
        "domain": "example.org",
        "accountId": str(world.account.pk),
        "state": "pending",
        "challenge": {
            "type": "TXT",
            "name": "_tenant-admin-challenge.example.org",
            "value": body["challenge"]["value"],
        },
        "createdAt": body["createdAt"],
    }
    assert body["challenge"]["value"].startswith("tenant-admin=")
    assert owner.get(answer["Location"]).json() == body
    assert owner.get(address).json()["_links"]["items"] == [
        {"name": "example.org", "href": f"{address}/example.org"}
    ]
    assert owner.post(address, {"domain": "example.org"}).status_code == 409


def test_the_dns_verifies_a_domain(owner: ApiClient, address: str, zone: Zone) -> None:
    challenge = owner.post(address, {"domain": "example.org"}).json()["challenge"]
    verify = f"{address}/example.org/verify"
    missing = owner.post(verify, {})
    assert (missing.status_code, missing.json()["error"]) == (400, "bad_request")
    assert challenge["value"] in missing.json()["message"]
    zone.records[challenge["name"]] = ["something else"]
    assert "holds another value" in owner.post(verify, {}).json()["message"]
    zone.records[challenge["name"]] = ["something else", challenge["value"]]
    answer = owner.post(verify, {})
    assert answer.status_code == 200, answer.content
    assert answer.json()["state"] == "verified"
    assert "verifiedAt" in answer.json()
    zone.records.clear()
    assert owner.post(verify, {}).json() == answer.json()


def test_a_name_server_that_is_silent_is_said(owner: ApiClient, address: str, settings: Any) -> None:
    owner.post(address, {"domain": "example.org"})
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 0))
        settings.DNS_NAMESERVERS, settings.DNS_PORT = ["127.0.0.1"], silent.getsockname()[1]
        settings.DNS_TIMEOUT_SECONDS = 0.2
        answer = owner.post(f"{address}/example.org/verify", {})
    assert answer.status_code == 400
    assert "did not answer" in answer.json()["message"]


def test_a_worker_waits_for_a_slow_name_server(
    owner: ApiClient, address: str, zone: Zone, monkeypatch: pytest.MonkeyPatch
) -> None:
    challenge = owner.post(address, {"domain": "example.org"}).json()["challenge"]
    zone.records[challenge["name"]] = [challenge["value"]]
    zone.seconds = 0.5
    monkeypatch.setattr("accounts.billing.domains._MOMENT", 0.1)
    sent: list[tuple[Any, ...]] = []
    monkeypatch.setattr("accounts.api.accounts.check_domain.delay", lambda *given: sent.append(given))
    answer = owner.post(f"{address}/example.org/verify", {})
    assert (answer.status_code, answer.json()["state"]) == (202, "pending")
    assert sent == [(Domain.objects.get().pk, "owner@example.org")]
    check_domain(*sent[0])
    assert owner.get(f"{address}/example.org").json()["state"] == "verified"
    assert Event.objects.get(kind="domain.verified").actor == "owner@example.org"
    # A task may run twice, and after the domain is gone.
    check_domain(*sent[0])
    check_domain(0, "owner@example.org")
    assert Event.objects.filter(kind="domain.verified").count() == 1


def test_one_check_at_a_time_keeps_a_worker(
    owner: ApiClient, address: str, zone: Zone, monkeypatch: pytest.MonkeyPatch
) -> None:
    challenge = owner.post(address, {"domain": "example.org"}).json()["challenge"]
    zone.records[challenge["name"]] = [challenge["value"]]
    domain = Domain.objects.get()
    with monkeypatch.context() as patch:

        def check_another(*_: object, **__: object) -> None:
            with pytest.raises(Retry):
                check_domain(domain.pk, "owner@example.org")

        patch.setattr("accounts.billing.domains.require_challenge", check_another)
        check_domain(domain.pk, "owner@example.org")
    assert owner.get(f"{address}/example.org").json()["state"] == "verified"


def test_a_worker_leaves_a_domain_without_its_record_as_it_is(
    owner: ApiClient, address: str, zone: Zone
) -> None:
    challenge = owner.post(address, {"domain": "example.org"}).json()["challenge"]
    zone.records[challenge["name"]] = ["something else"]
    check_domain(Domain.objects.get().pk, "owner@example.org")
    assert owner.get(f"{address}/example.org").json()["state"] == "pending"


def test_an_account_has_ten_checks_a_minute(
    owner: ApiClient, address: str, zone: Zone, world: factories.World
) -> None:
    owner.post(address, {"domain": "example.org"})
    verify = f"{address}/example.org/verify"
    assert [owner.post(verify, {}).status_code for _ in range(11)] == [400] * 10 + [429]
    stranger = ApiClient(factories.sign_in(world.stranger))
    theirs = f"/config/accounts/{world.stranger_tenant.account_id}/domains"
    stranger.post(theirs, {"domain": "example.com"})
    assert stranger.post(f"{theirs}/example.com/verify", {}).status_code == 400


def test_only_a_platform_admin_verifies_by_hand(
    owner: ApiClient, address: str, world: factories.World
) -> None:
    owner.post(address, {"domain": "example.org"})
    verify = f"{address}/example.org/verify"
    assert owner.post(verify, {"manual": True}).status_code == 403
    assert owner.post(verify, {"manual": "yes"}).status_code == 400
    admin = ApiClient(factories.sign_in(world.platform_admin))
    assert admin.post(verify, {"manual": True}).json()["state"] == "verified"


def test_a_domain_is_verified_for_one_account_only(
    owner: ApiClient, address: str, world: factories.World
) -> None:
    admin = ApiClient(factories.sign_in(world.platform_admin))
    theirs = f"/config/accounts/{world.stranger_tenant.account_id}/domains"
    for where in (address, theirs):
        assert admin.post(where, {"domain": "example.org"}).status_code == 201
    assert admin.post(f"{address}/example.org/verify", {"manual": True}).status_code == 200
    taken = admin.post(f"{theirs}/example.org/verify", {"manual": True})
    assert taken.status_code == 409
    assert admin.delete(f"{theirs}/example.org").status_code == 200
    assert admin.post(theirs, {"domain": "example.org"}).status_code == 409


@pytest.mark.parametrize(
    "name", ["", "x", "a b.org", "*.example.org", "127.0.0.1", "gateway.localhost", "x.gateway.localhost", 7]
)
def test_a_shared_or_invalid_domain_is_a_400(owner: ApiClient, address: str, name: object) -> None:
    answer = owner.post(address, {"domain": name})
    assert (answer.status_code, answer.json()["details"][0]["path"]) == (400, "/domain")


def test_a_domain_that_carries_fqdns_stays(owner: ApiClient, address: str, world: factories.World) -> None:
    Domain.objects.create(account=world.account, name="example.org", challenge="x", verified_at=now())
    configure(world.tenant.pk, fqdns=["sql.example.org"])
    answer = owner.delete(f"{address}/example.org")
    assert answer.status_code == 409
    assert "sql.example.org" in answer.json()["message"]
    configure(world.tenant.pk)
    assert owner.delete(f"{address}/example.org").json()["success"] is True
    assert owner.delete(f"{address}/example.org").status_code == 404
    assert owner.get(f"{address}/nonsense").status_code == 404


def test_a_held_name_is_shown_to_the_owners_of_the_account(
    owner: ApiClient, world: factories.World, settings: Any
) -> None:
    name = "mine.gateway.localhost"
    tenant_id = world.tenant.pk
    configure(tenant_id, fqdns=[name])
    claimed = {"fqdn": name, "tenantId": str(tenant_id), "state": "claimed"}
    assert owner.get(f"/config/fqdns/{name}").json() == claimed
    assert owner.get("/config/fqdns/MINE.gateway.localhost").json() == claimed
    items = [{"name": name, "href": f"/config/fqdns/{name}"}]
    assert body_of(owner.get("/config/fqdns"))["_links"]["items"] == items
    assert body_of(owner.get(f"/config/fqdns?tenant={tenant_id}"))["_links"]["items"] == items
    other = f"/config/fqdns?tenant={world.stranger_tenant.pk}"
    assert body_of(owner.get(other))["_links"]["items"] == []
    assert owner.get("/config/fqdns?tenant=x").status_code == 400
    stranger = ApiClient(factories.sign_in(world.stranger))
    assert stranger.get(f"/config/fqdns/{name}").status_code == 404
    assert body_of(stranger.get("/config/fqdns"))["_links"]["items"] == []
    admin = ApiClient(factories.sign_in(world.platform_admin))
    assert admin.get(f"/config/fqdns/{name}").json() == claimed
    configure(tenant_id)
    released = Fqdn.objects.get(name=name).released_at
    assert released is not None
    assert owner.get(f"/config/fqdns/{name}").json() == {
        **claimed,
        "state": "tombstoned",
        "until": format_timestamp(released + settings.TOMBSTONE_LIFETIME),
    }
    assert remove_old_fqdns() == 0
    Fqdn.objects.update(released_at=now() - settings.TOMBSTONE_LIFETIME)
    assert owner.get(f"/config/fqdns/{name}").status_code == 404
    assert remove_old_fqdns() == 1
