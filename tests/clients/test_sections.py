"""Everything that a tenant has in its file: written, read, planned, applied."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import httpx
import pytest
from django.core.cache import cache
from django.test import Client as Browser
from tenantadmin_client import Client, cli
from tenantadmin_client.files import FileError, read_file, write_file
from tenantadmin_client.sections import SECTIONS, SectionError, apply_sections

from analytics.models import Alert
from tests import factories

if TYPE_CHECKING:
    from tests.factories import World

pytestmark = pytest.mark.django_db

SCOPES = ("config:read", "config:write", "analytics:read")
HOOK = "https://hooks.example.org/services/T0/B0/secret"


def answer(request: httpx.Request) -> httpx.Response:
    """Answer a request of the client by Django, without a server."""
    sent = Browser().generic(
        request.method,
        request.url.raw_path.decode(),
        request.content,
        content_type=request.headers.get("Content-Type", ""),
        headers={name: value for name, value in request.headers.items() if name != "host"},
    )
    return httpx.Response(sent.status_code, headers=dict(sent.items()), content=b"".join(sent))


@pytest.fixture
def client(world: World) -> Iterator[Client]:
    cache.clear()
    secret = factories.pat_secret(world.owner, *SCOPES, tenants=[str(world.tenant.pk)])
    with Client("https://x.example", secret, transport=httpx.MockTransport(answer), attempts=1) as client:
        yield client


def read(client: Client, tenant: str) -> dict[str, dict[str, Any]]:
    return {name: section.read(client, tenant).parts for name, section in SECTIONS.items()}


def save(path: Path, tenant: str, sections: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write a file, and set the variables of its secrets, which it does not hold."""
    secrets = write_file(path, tenant=tenant, rules=[], sections=sections)
    assert "secret" not in path.read_text()
    values = [
        channel[key]
        for alert in sections["alerts"].values()
        for channel in alert["channels"]
        for key in channel
        if key == "key" or (key == "url" and channel["type"] != "pagerduty")
    ]
    for name, value in zip(secrets, values, strict=True):
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize("count", [8, pytest.param(200, marks=pytest.mark.slow)])
def test_what_is_applied_is_what_is_pulled(
    client: Client, world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    tenant, chance = str(world.tenant.pk), random.Random(1)  # noqa: S311
    before = read(client, tenant)
    written = dict.fromkeys(SECTIONS, 0)
    for number in range(count):
        path = tmp_path / f"{number}.{chance.choice(['yaml', 'json'])}"
        save(path, tenant, random_tenant(chance, before), monkeypatch)
        file = read_file(path)
        counts = apply_sections(client, tenant, file.sections)
        written = {name: written[name] + counts[name] for name in written}
        live = read(client, tenant)
        for name, section in SECTIONS.items():
            assert not section.compare(file.sections[name], section.read(client, tenant)), (number, name)
            assert live[name].keys() == file.sections[name].keys()
        # What is pulled is the same again, and changes nothing.
        save(path, tenant, live, monkeypatch)
        assert read_file(path).sections == live
        assert not any(apply_sections(client, tenant, live).values())
        cache.clear()
    assert all(written.values())


def random_tenant(chance: random.Random, before: dict[str, Any]) -> dict[str, Any]:
    """Return a configuration, which has what is there ``before``, and alerts."""
    labels = {f"l{number}": chance.choice(["a", "${b}", "é"]) for number in range(chance.randrange(3))}
    prices = [
        {
            "from": f"2026-0{month}-01",
            "currency": "USD",
            "perHour": f"{chance.randrange(1, 9)}.50",
            "billing": "always-on",
        }
        for month in sorted(chance.sample(range(1, 9), chance.randrange(3)))
    ]
    config = {
        **before["config"]["config"],
        "labels": labels,
        "defaults": {"ttlSeconds": chance.choice([60, 600])},
        "warehouse": {"adapterType": "snowflake", "serverHostname": "x.example.org", "pricing": prices},
    }
    channels: list[dict[str, Any]] = [
        {"type": "email", "to": "owner@example.org"},
        {"type": "webhook", "url": f"{HOOK}-{chance.randrange(9)}"},
        {"type": "slack", "url": HOOK},
        {"type": "pagerduty", "url": "https://events.pagerduty.com/v2/enqueue", "key": "k" * 32},
    ]
    alerts = {
        f"alert {number} ${{x}}": {
            "kind": chance.choice(["errors", "leak", "log-late", "hit-rate-fell"]),
            "channels": chance.sample(channels, chance.randrange(1, 4)),
            "enabled": chance.random() < 0.5,
            **chance.choice([{}, {"quietHours": {"from": "22:00", "to": "06:00"}}, {"threshold": 5.0}]),
        }
        for number in chance.sample(range(5), chance.randrange(4))
    }
    return {"config": {"config": config}, "alerts": alerts}


def test_nothing_is_written_if_something_changed_since_the_plan(client: Client, world: World) -> None:
    tenant = str(world.tenant.pk)
    planned = {name: {"digest": section.read(client, tenant).digest} for name, section in SECTIONS.items()}
    alerts = {"late": {"kind": "log-late", "channels": [{"type": "slack", "url": HOOK}]}}
    config = client.config(tenant)
    path = f"/config/tenants/{tenant}/config"
    changed = {**config.body, "labels": {"team": "bi"}}
    client.request("PUT", path, json=changed, headers={"If-Match": config.etag})
    wanted = {**read(client, tenant), "alerts": alerts}
    with pytest.raises(SectionError, match=f"The config of {tenant} changed since the plan"):
        apply_sections(client, tenant, wanted, planned=planned)
    assert not Alert.objects.exists()
    assert apply_sections(client, tenant, wanted) == {"config": 0, "alerts": 1}


def test_an_alert_that_another_user_changes_meanwhile_stays(client: Client, world: World) -> None:
    tenant = str(world.tenant.pk)
    alert = {"kind": "log-late", "channels": [{"type": "slack", "url": HOOK}]}
    apply_sections(client, tenant, {"alerts": {"first": alert, "second": alert}})

    def on_written(_: str, name: str) -> None:
        if name == "first":
            Alert.objects.filter(name="second").update(version=uuid4(), threshold=99)

    off = {name: {**alert, "enabled": False} for name in ("first", "second")}
    with pytest.raises(SectionError, match=f"The alert 'second' of {tenant} has just changed"):
        apply_sections(client, tenant, {"alerts": off}, on_written=on_written)
    assert set(Alert.objects.values_list("name", "enabled", "threshold")) == {
        ("first", False, 120.0),
        ("second", True, 99.0),
    }


def test_a_plan_shows_no_secret(client: Client, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is posted below pull requests. It shows that a secret changes, and of which host."""
    tenant, alerts = str(world.tenant.pk), SECTIONS["alerts"]
    key = "k" * 32
    one = [{"type": "slack", "url": HOOK}, {"type": "pagerduty", "key": key}]
    apply_sections(client, tenant, {"alerts": {"late": {"kind": "log-late", "channels": one}}})
    other = [{"type": "slack", "url": f"{HOOK}-2"}, {"type": "pagerduty", "key": "K" * 32}]
    wanted = {"late": {"kind": "log-late", "channels": other}, "new": {"kind": "leak", "channels": other}}
    shown = json.dumps(asdict(alerts.compare(wanted, alerts.read(client, tenant))))
    assert shown.count("https://hooks.example.org… (SHA-256 ".encode("unicode_escape").decode()) == 3
    assert "secret" not in shown
    assert key not in shown.lower()
    monkeypatch.setenv("TENANTCTL_TEAM", "a long secret")
    hidden = cli._without_secrets({"labels": [{"team": "of a long secret"}]})
    assert hidden == {"labels": [{"team": "of ${TEAM}"}]}


def test_variables_are_of_one_channel_of_one_tenant(client: Client, tmp_path: Path) -> None:
    channels = [{"type": "slack", "url": HOOK}] * 2
    alerts = {name: {"kind": "leak", "channels": channels} for name in ("p 95!", "P-95")}
    names = [
        name
        for tenant in ("aaaaaaaa-1", "bbbbbbbb-1")
        for name in write_file(tmp_path / "t.yaml", tenant=tenant, rules=[], sections={"alerts": alerts})
    ]
    assert len({*names}) == 8
    assert names[:2] == ["TENANTCTL_ALERT_aaaaaaaa_P_95_URL", "TENANTCTL_ALERT_aaaaaaaa_P_95_URL_2"]


def test_what_the_service_writes_otherwise_is_no_change(client: Client, world: World) -> None:
    tenant = str(world.tenant.pk)
    channels = [
        {"type": "slack", "url": "https://HOOKS.example.org/T0/Secret"},
        {"type": "email", "to": "Owner@Example.org"},
    ]
    alerts = {"alerts": {"late": {"kind": "log-late", "channels": channels}}}
    assert apply_sections(client, tenant, alerts) == {"alerts": 1}
    assert apply_sections(client, tenant, alerts) == {"alerts": 0}


def test_a_section_that_is_left_out_stays(client: Client, world: World, tmp_path: Path) -> None:
    path = tmp_path / "tenant.json"
    path.write_text(json.dumps({"tenant": str(world.tenant.pk), "config": {"labels": {"team": "bi"}}}))
    file = read_file(path)
    assert file.rules is None
    assert apply_sections(client, file.tenant, file.sections) == {"config": 1}
    assert client.config(file.tenant).body["labels"] == {"team": "bi"}


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({"config": []}, "'config' must be names and values"),
        ({"config": {"seq": 1}}, "'seq' of 'config' cannot be written here"),
        ({"alerts": {}}, "'alerts' must be a list"),
        ({"alerts": [{"kind": "leak"}]}, "'alerts/1' needs a name that no other has"),
        ({"alerts": [{"name": "a"}]}, "'alerts/1/channels' must be a list of objects"),
        ({"alerts": [{"name": "a", "channels": ["b"]}]}, "'alerts/1/channels' must be a list of objects"),
        ({"alerts": 2 * [{"name": "a", "channels": []}]}, "'alerts/2' needs a name"),
        ({"alerts": [{"name": "a", "state": "ok"}]}, "'alerts/1' has no member 'state'"),
        ({"members": []}, "there is no member 'members'"),
    ],
)
def test_a_malformed_section_is_refused_with_its_place(
    section: dict[str, Any], message: str, tmp_path: Path
) -> None:
    path = tmp_path / "tenant.json"
    path.write_text(json.dumps({"tenant": "t", **section}))
    with pytest.raises(FileError, match=message):
        read_file(path)


def test_other_variables_of_the_environment_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROLE", "owner")
    monkeypatch.setenv("TENANTCTL_TEAM", "bi")
    path = tmp_path / "tenant.json"
    path.write_text('{"tenant": "t", "config": {"labels": {"team": "${TEAM}"}}}')
    assert read_file(path).sections == {"config": {"config": {"labels": {"team": "bi"}}}}
    path.write_text('{"tenant": "t", "config": {"tenantName": "${ROLE}"}}')
    with pytest.raises(FileError, match="'ROLE' has no value"):
        read_file(path)
