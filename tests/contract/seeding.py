"""A service with one of everything, for tests that draw requests. Contract: Resources and their fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Final

from django.core.cache import cache
from django.core.management import call_command

from accounts.access.credentials import create_pat
from accounts.access.scopes import ALL_SCOPES, NOT_IN_MEMBERS_PATS, Scope
from accounts.billing.domains import register_domain
from accounts.invitations import LIFETIME
from accounts.models import AccessRequest, Invitation, PermissionGrant, PersonalAccessToken
from analytics.jobs.digests import make_digest
from analytics.models import Alert, AlertDelivery, AlertFiring
from analytics.watch.facts import DigestPeriod
from analytics.watch.preferences import unsubscribe_token
from analytics.words.alerts import make_messages
from logs.layout import day_start_ms
from rules.drafts import create_draft
from rules.write import write_ruleset
from tenantadmin.lib.core.timestamps import now
from tenantadmin.lib.jobs import outbox
from tenantadmin.lib.objectstore import default_store
from tests import factories
from tests.conftest import ApiClient
from tests.objects import save_entries
from tosapp.publishing import publish

DAY: Final = date(2026, 3, 1)
TERMS: Final = "# Terms\n\nBe kind.\n"
RULES: Final[list[dict[str, Any]]] = [
    {"id": "orders", "conditions": {"userName": "a"}, "ttlSeconds": 3600},
    {"id": "items", "conditions": {"userName": "b"}},
    {"id": "written", "conditions": {"isDataChange": True}, "invalidateRules": ["orders", "items"]},
]
STATEMENTS: Final = (
    "SELECT count(*) FROM proxy_logs",
    f"SELECT * FROM proxy_logs WHERE day = '{DAY}'",
    "WITH d AS (SELECT DISTINCT day FROM proxy_logs) SELECT * FROM d",
    "SELECT 1 / 0 AS a, {'b': [1, NULL]} AS c, 1::HUGEINT AS c",
    "SELECT CAST(userName AS INTEGER) FROM proxy_logs",
    "SELECT 1; SELECT 2",
    "DESCRIBE proxy_logs",
)


@dataclass(frozen=True, slots=True)
class Seed:
    """What exists, by the name of the parameter or property that may hold it, and who asks, how often."""

    values: Mapping[str, Sequence[Any]]
    tokens: Sequence[str | None]
    wildcard: str
    owner_pat: str
    #: Of a member who has not acknowledged the terms: reaches these alone.
    bridge: str


def seed_service() -> Seed:
    """Fill the database and the object store with one of everything that a path can name."""
    world = factories.make_world()
    tenant = world.tenant
    factories.make_tenant(world.account, "Fqdns")
    write_ruleset(tenant_id=tenant.pk, document={"rules": RULES}, actor=world.owner.email)
    write_ruleset(tenant_id=tenant.pk, document={"rules": RULES[:1]}, actor=world.owner.email)
    write_ruleset(tenant_id=tenant.pk, document={"rules": RULES}, actor=world.owner.email)
    drafts = [
        str(create_draft(tenant_id=tenant.pk, document={"rules": rules}, actor=world.owner.email).pk)
        for rules in (RULES[:1], list[dict[str, Any]]([{}]))
    ]
    recommendations = [
        str(factories.recommendation(tenant, kind=kind, state=state, seq=3, accepted_seq=accepted).pk)
        for kind, state, accepted in (
            ("cache", "open", None),
            ("ttl", "dismissed", None),
            ("swr", "accepted", 3),
        )
    ]
    wildcard = factories.pat_token(world.platform_admin, *ALL_SCOPES, tenants=["*"])
    admin = ApiClient(wildcard)
    here = f"/tenants/{tenant.pk}"
    config = admin.get(f"/config{here}/config").json()
    fqdn = f"{tenant.pk}.gateway.localhost"
    for path, body in (
        (f"/config{here}/config", {**config, "fqdns": [fqdn]}),
        (f"{here}/cachekeys/k1", {"ruleId": "orders", "tables": ["a"], "tags": {"b": "c"}}),
    ):
        _expect(200, admin.put(path, body))
    for marker in ("m1", "m2"):
        _expect(
            201,
            admin.post(f"{here}/invalidation-markers", {"markerId": marker, "targetRuleId": "orders"}),
        )
    register_domain(account_id=world.account.pk, name="example.org", actor=world.owner.email)
    grant = PermissionGrant.objects.create(
        grantee=world.stranger, resource="tenant", resource_id=tenant.pk, permissions=["config:read"]
    )
    invitation = Invitation.objects.create(
        tenant=world.stranger_tenant,
        email=world.owner.email,
        role="member",
        invited_by=world.stranger,
        expires_at=now() + LIFETIME,
    )
    alerts = [
        Alert.objects.create(tenant=tenant, name="Hits", kind=kind, threshold=5, window=1, channels=[channel])
        for kind, channel in (
            ("errors", {"type": "email", "to": world.owner.email}),
            ("leak", {"type": "webhook", "url": "https://hooks.example.org/a"}),
        )
    ]
    alerts[0].value = 7.5
    firing = AlertFiring.objects.create(alert=alerts[0], value=7.5, threshold=5, window=1)
    outbox.put(make_messages(alerts[0], occasion=AlertDelivery.Occasion.STARTED, at=now(), firing=firing))
    asked = AccessRequest.objects.create(
        tenant=tenant, staff=world.platform_admin, hours=1, reason="ticket 7", expires_at=now() + LIFETIME
    )
    terms = publish(TERMS, actor=world.platform_admin.email)
    for person in (world.owner, world.platform_admin):
        markdown = {"markdown": TERMS}
        _expect(204, ApiClient(factories.sign_in(person)).post(f"/users/{person.email}/tos", markdown))
        person.refresh_from_db()
    owner_scopes = sorted(set(Scope) - {Scope.TOS_PUBLISH, *NOT_IN_MEMBERS_PATS})
    owner_pat = factories.pat_token(world.owner, *owner_scopes, tenants=[str(tenant.pk)])
    bridge = factories.sign_in(world.member)
    _seed_logs(tenant.pk)
    emails = [world.owner.email] * 3 + [
        person.email for person in (world.owner, world.member, world.stranger, world.platform_admin)
    ]
    ids = [str(tenant.pk)] * 3 + [str(world.stranger_tenant.pk)]
    accounts = [str(world.account.pk)] * 3 + [str(world.stranger_tenant.account_id)]
    return Seed(
        values={
            "email": emails,
            "userId": ["Ana", "a/b c"],
            "owners": [emails[:1], emails[3:]],
            "grantee": emails,
            "tenant": ids,
            "tenantId": ids,
            "account": accounts,
            "accountId": accounts,
            "accounts": [accounts[:1], []],
            "pat": [create_pat(owner=world.member, name="x", scopes=[Scope.CONFIG_READ])[1]],
            "resourceId": [*ids, *accounts],
            "tenants": [ids[:1], ["*"], []],
            "scopes": [["config:read"], ["analytics:read", "cache-admin"], []],
            "permissions": [["config:read"], ["config:read", "config:write"]],
            "pat_id": list(PersonalAccessToken.objects.values_list("pk", flat=True)),
            "grant": [str(grant.pk)],
            "invitation": [str(invitation.pk)],
            "access_request": [str(asked.pk)],
            "fqdn": [fqdn],
            "fqdns": [[], [fqdn], ["other.gateway.localhost"]],
            "domain": ["example.org", "example.net"],
            "md5": [terms.hash],
            "markdown": [TERMS, "# Other"],
            "marker": ["m1", "m2"],
            "markerId": ["m1", "m3"],
            "rule": ["written", "orders"],
            "ruleId": ["written", "orders"],
            "targetRuleId": ["orders", "items"],
            "invalidateRules": [["orders"], []],
            "rules": [RULES, RULES[:1], []],
            "cachekey": ["k1", "k2"],
            "cacheKey": ["k1", "k2"],
            "seq": [0, 1, 2],
            "from": [0, 1, f"{DAY}"],
            "to": [2, 3, f"{DAY}"],
            "limit": [1, 200],
            "year": [f"{DAY:%Y}"],
            "month": [f"{DAY:%m}"],
            "day": [f"{DAY:%d}"],
            "hour": ["00"],
            "week": [f"{DAY:%V}"],
            "t": [unsubscribe_token(user_id=world.member.pk, tenant_id=tenant.pk), "x"],
            "file": ["a.json"],
            "sql": STATEMENTS,
            "document": ["day", "month", "year", "users"],
            "draft": drafts,
            "draftId": drafts,
            "recommendationId": recommendations,
            "alertId": [str(alert.pk) for alert in alerts],
            "window": [1, 7],
            "threshold": [5, 0.5],
            "channels": [[{"type": "email", "to": world.owner.email}]],
            "quietHours": [{"from": "22:00", "to": "06:00"}, None],
            "reason": ["Not now."],
            "until": ["2099-01-01"],
            "baseSeq": [0, 3],
            "request": [{"userName": "a"}, {}],
            "logId": ["x"],
            "period": [f"{DAY}", f"{DAY:%Y-%m}", f"{DAY:%Y}", ""],
            "conditions": [{"userName": "a"}, {"statementType": {"in": ["SELECT"]}}],
        },
        tokens=[
            *[wildcard] * 5,
            *[owner_pat] * 3,
            *[factories.sign_in(world.owner)] * 3,
            *[factories.sign_in(world.platform_admin)] * 2,
            bridge,
            None,
        ],
        wildcard=wildcard,
        owner_pat=owner_pat,
        bridge=bridge,
    )


def _seed_logs(tenant_id: Any) -> None:
    cache.clear()
    entries = [
        {
            "timestamp": day_start_ms(DAY) + 60_000 * number,
            "userName": ("Ana", "a/b c")[number % 2],
            "standardizedSql": f"SELECT {number % 3}",
            "cacheStatus": ("HIT", "MISS", "PASSTHROUGH", "BYPASS", "ERROR")[number % 5],
            "cacheKey": f"k{number % 4}",
            "matchedRule": "orders" if number % 2 else None,
            "responseSize": 100 + number,
            "responseTimeMs": 7 * number,
            "warehouseExecutionTimeMs": 11 * number,
        }
        for number in range(40)
    ]
    save_entries(tenant_id, DAY, entries)
    call_command("rebuild", tenant=tenant_id)
    for period in (DigestPeriod.of_day(DAY), DigestPeriod.with_day(DAY)):
        make_digest(default_store(), tenant=tenant_id, period=period)


def _expect(status: int, answer: Any) -> None:
    assert answer.status_code == status, answer.content
