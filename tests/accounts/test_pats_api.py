"""``/users/{email}/tokens``. Contract: Authentication, 4."""

from __future__ import annotations

import datetime as dt
from functools import partial
from typing import TYPE_CHECKING, Any

import jwt
import pytest

from accounts.access.credentials import create_pat, end_pat, rotate_pat
from accounts.access.scopes import Scope
from accounts.models import Membership, PermissionGrant, PersonalAccessToken, User
from accounts.pats import mail_ending_pats
from tenantadmin.lib.core.timestamps import format_timestamp, now
from tests import factories
from tests.accounts.support import at_once, signed_in
from tests.conftest import ApiClient
from tests.sending import sending

if TYPE_CHECKING:
    from django.core.mail import EmailMultiAlternatives

    from tests.factories import World


pytestmark = pytest.mark.django_db
OWN = "/users/owner@example.org/tokens"


def body(world: factories.World, **changes: Any) -> dict[str, Any]:
    return {"name": "ci", "scopes": ["config:read"], "tenants": [str(world.tenant.pk)], **changes}


def exchange(text: str) -> Any:
    return ApiClient().post("/oauth/token", {"grant_type": "pat_exchange", "pat": text})


def test_made_shown_once_listed_used_and_revoked(world: factories.World) -> None:
    owner = signed_in(world.owner)
    expires = now() + dt.timedelta(days=3)
    wanted = body(
        world,
        scopes=["config:write", "cache-admin"],
        endpoints=[{"methods": ["GET"], "path": "/users/*"}],
        expiresAt=format_timestamp(expires),
    )
    answer = owner.post(OWN, wanted)
    assert answer.status_code == 201
    made = answer.json()
    text = made.pop("token")
    pat = PersonalAccessToken.objects.get()
    assert made == {
        "id": pat.pk,
        "name": "ci",
        "owner": "owner@example.org",
        "prefix": text[:16],
        "scopes": ["cache-admin", "config:write"],
        "tenants": [str(world.tenant.pk)],
        "accounts": [],
        "endpoints": [{"methods": ["GET"], "path": "/users/*"}],
        "createdAt": format_timestamp(pat.created_at),
        "expiresAt": format_timestamp(expires),
        "lastUsedAt": None,
        "previousEndsAt": None,
    }
    assert owner.get(OWN).json() == {
        "_links": {
            "self": {"href": OWN},
            "parent": {"href": "/users/owner@example.org"},
            "items": [{"name": str(pat.pk), "href": f"{OWN}/{pat.pk}"}],
        },
        "tokens": [made],
    }
    minted = ApiClient(exchange(text).json()["access_token"])
    assert minted.get("/users").status_code == 403
    used = owner.get(OWN).json()["tokens"][0]["lastUsedAt"]
    assert used is not None
    # A request with its access token is a use of it too.
    hour = now() - dt.timedelta(hours=1)
    PersonalAccessToken.objects.filter(pk=pat.pk).update(last_used_at=hour)
    assert minted.get("/users").status_code == 403
    assert owner.get(OWN).json()["tokens"][0]["lastUsedAt"] >= used

    gone = owner.delete(f"{OWN}/{pat.pk}")
    assert (gone.status_code, gone.json()) == (
        200,
        {"success": True, "message": "The personal access token is revoked."},
    )
    assert exchange(text).status_code == 401
    assert minted.get("/users").status_code == 401
    assert owner.get(OWN).json()["tokens"] == []
    assert owner.delete(f"{OWN}/{pat.pk}").status_code == 404


@pytest.mark.parametrize("identifier", ["0", "99999999999999999999999", "x"])
def test_an_unknown_token_is_a_404(world: factories.World, identifier: str) -> None:
    assert signed_in(world.owner).delete(f"{OWN}/{identifier}").status_code == 404


@pytest.mark.parametrize(
    ("person", "scopes", "status"),
    [
        ("member", ["config:read", "logs:read", "logs:query", "analytics:read"], 201),
        ("member", ["config:write"], 403),
        ("member", ["cache-admin"], 403),
        ("member", ["analytics:users"], 403),
        ("tenant_admin", ["config:write", "cache-admin", "analytics:users", "logs:query"], 201),
        ("owner", ["config:write", "cache-admin", "analytics:users", "logs:query"], 201),
        ("owner", ["users:read"], 403),
        ("owner", ["users:write"], 403),
        ("owner", ["tos:publish"], 403),
        ("platform_admin", ["users:write", "tos:publish", "cache-admin", "config:write"], 201),
        ("platform_admin", ["config:read", "logs:read"], 403),
        ("platform_admin", ["logs:query"], 403),
        ("stranger", ["config:read"], 403),
    ],
)
def test_the_role_limits_the_scopes_of_a_token(
    world: factories.World, person: str, scopes: list[str], status: int
) -> None:
    user: User = getattr(world, person)
    answer = signed_in(user).post(f"/users/{user.email}/tokens", body(world, scopes=scopes))
    assert answer.status_code == status, answer.content
    assert PersonalAccessToken.objects.count() == (status == 201)


def test_a_platform_admin_puts_raw_logs_into_a_token_of_a_tenant_that_it_is_a_member_of(
    world: factories.World,
) -> None:
    Membership.objects.create(user=world.platform_admin, tenant=world.tenant, role="member")
    admin, path = signed_in(world.platform_admin), "/users/me/tokens"
    wanted = body(world, scopes=["logs:read", "logs:query", "config:write"])
    assert admin.post(path, wanted).status_code == 201
    others: list[dict[str, Any]] = [
        {"tenants": ["*"]},
        {"tenants": [str(world.stranger_tenant.pk)]},
        {"tenants": []},
    ]
    for elsewhere in others:
        answer = admin.post(path, {**wanted, **elsewhere})
        assert (answer.status_code, answer.json()["message"]) == (
            403,
            "The owner's role and memberships do not give the scope 'logs:query'.",
        )


def test_a_token_lasts_a_year_unless_its_creator_says_otherwise(
    world: factories.World, settings: Any
) -> None:
    owner = signed_in(world.owner)
    year, minute = dt.timedelta(days=365), dt.timedelta(minutes=1)
    made = PersonalAccessToken.objects.get(pk=owner.post(OWN, body(world)).json()["id"])
    assert abs(made.expires_at - made.created_at - year) < minute
    settings.PAT_DEFAULT_DAYS = 7
    made = PersonalAccessToken.objects.get(pk=owner.post(OWN, body(world)).json()["id"])
    assert abs(made.expires_at - made.created_at - dt.timedelta(days=7)) < minute
    settings.PAT_MAX_DAYS = 3
    made = PersonalAccessToken.objects.get(pk=owner.post(OWN, body(world)).json()["id"])
    assert abs(made.expires_at - made.created_at - dt.timedelta(days=3)) < minute


def test_a_token_lasts_two_years_at_most(world: factories.World) -> None:
    admin = signed_in(world.platform_admin)
    today = now()
    # Also if one of them is a leap year.
    in_two_years = today.replace(year=today.year + 2, day=min(today.day, 28))
    for expires in (in_two_years, today + dt.timedelta(days=730)):
        made = admin.post(OWN, body(world, expiresAt=format_timestamp(expires)))
        assert (made.status_code, made.json()["expiresAt"]) == (201, format_timestamp(expires))
    later = format_timestamp(today + dt.timedelta(days=732))
    for text, code in ((later, "too-late"), (None, "null")):
        refused = admin.post(OWN, body(world, expiresAt=text))
        assert (refused.status_code, refused.json()["error"]) == (400, "validation_failed")
        assert [(detail["path"], detail["code"]) for detail in refused.json()["details"]] == [
            ("/expiresAt", code)
        ]


def test_an_access_token_ends_with_its_pat(world: factories.World) -> None:
    _, text = create_pat(
        owner=world.owner, name="x", scopes=[Scope.CONFIG_READ], expires_at=now() + dt.timedelta(minutes=5)
    )
    answer = exchange(text).json()
    assert 290 <= answer["expires_in"] <= 300
    claims = jwt.decode(answer["access_token"], options={"verify_signature": False})
    assert 290 <= claims["exp"] - claims["iat"] <= 300


def test_a_user_has_at_most_so_many_active_tokens(world: factories.World, settings: Any) -> None:
    assert settings.PAT_MAX_ACTIVE == 50
    settings.PAT_MAX_ACTIVE = 3
    owner = signed_in(world.owner)
    pats = [owner.post(OWN, body(world)).json()["id"] for _ in range(3)]
    refused = [client.post(OWN, body(world)) for client in (owner, signed_in(world.platform_admin))]
    for answer in refused:
        (detail,) = answer.json()["details"]
        assert (answer.status_code, detail["code"], detail["message"]) == (
            400,
            "too-many-tokens",
            "owner@example.org has 3 active personal access tokens, and may have 3. Revoke one first.",
        )
    assert signed_in(world.member).post("/users/me/tokens", body(world)).status_code == 201
    PersonalAccessToken.objects.filter(pk=pats[0]).update(expires_at=now())
    assert owner.post(OWN, body(world)).status_code == 201
    assert owner.post(OWN, body(world)).status_code == 400
    assert owner.delete(f"{OWN}/{pats[1]}").status_code == 200
    assert owner.post(OWN, body(world)).status_code == 201


@pytest.mark.django_db(transaction=True)
def test_two_requests_at_once_do_not_exceed_the_number_of_tokens(settings: Any) -> None:
    settings.PAT_MAX_ACTIVE = 2
    user = factories.make_user("ada@example.org")
    tenant = factories.make_tenant(factories.make_account("Acme", owners=[user]), owner=user)
    wanted = {"name": "x", "scopes": ["config:read"], "tenants": [str(tenant.pk)]}
    calls = [partial(signed_in(user).post, "/users/me/tokens", wanted) for _ in range(4)]
    assert sorted(answer.status_code for answer in at_once(calls)) == [201, 201, 400, 400]
    assert PersonalAccessToken.objects.count() == 2


def test_a_guests_token_holds_read_scopes_only(world: factories.World) -> None:
    User.objects.filter(pk=world.owner.pk).update(role="guest")
    world.owner.refresh_from_db()
    guest = signed_in(world.owner)
    assert guest.post(OWN, body(world, scopes=["config:write"])).status_code == 403
    assert guest.post(OWN, body(world)).status_code == 201


def test_wildcards_are_for_platform_admins(world: factories.World) -> None:
    for wildcard in ({"tenants": ["*"]}, {"tenants": [], "accounts": ["*"]}):
        assert signed_in(world.owner).post(OWN, body(world, **wildcard)).status_code == 403
        admin = signed_in(world.platform_admin)
        assert admin.post("/users/admin@example.org/tokens", body(world, **wildcard)).status_code == 201
        # A wildcard token never exceeds its owner's rights, also if an admin creates it.
        assert admin.post(OWN, body(world, **wildcard)).status_code == 403


def test_accounts_must_be_owned_by_the_owner(world: factories.World) -> None:
    accounts = [str(world.account.pk)]
    assert signed_in(world.owner).post(OWN, body(world, tenants=[], accounts=accounts)).status_code == 201
    answer = signed_in(world.member).post(
        "/users/member@example.org/tokens", body(world, tenants=[], accounts=accounts)
    )
    assert answer.status_code == 403


def test_a_token_has_no_scope_that_a_grant_on_one_of_its_tenants_lacks(world: factories.World) -> None:
    foreign = str(world.stranger_tenant.pk)
    owner = world.owner
    PermissionGrant.objects.create(
        grantee=owner,
        resource="tenant",
        resource_id=foreign,
        permissions=["analytics:numbers", "config:read"],
    )
    client, both = signed_in(owner), [str(world.tenant.pk), foreign]
    for scopes in (["analytics:numbers", "config:read"], ["config:read"]):
        assert client.post(OWN, body(world, tenants=both, scopes=scopes)).status_code == 201
    for scopes in (["logs:query"], ["config:read", "config:write"]):
        answer = client.post(OWN, body(world, tenants=both, scopes=scopes))
        assert answer.status_code == 403
        assert answer.json()["message"] == (
            f"The owner's grant on the tenant {foreign} does not give the scope '{scopes[-1]}'. "
            "Make a token for this tenant alone, with the scopes of the grant."
        )
        assert client.post(OWN, body(world, scopes=scopes)).status_code == 201


def test_a_platform_admin_gets_no_token_for_the_logs_of_others(world: factories.World) -> None:
    admin, own = signed_in(world.platform_admin), signed_in(world.owner)
    message = "Only members themselves make tokens for the raw logs, the SQL and the users of their tenants."
    for scope in ("logs:read", "logs:query", "analytics:users"):
        refused = admin.post(OWN, body(world, scopes=["config:read", scope]))
        assert (refused.status_code, refused.json()["message"]) == (403, message)
        made = own.post(OWN, body(world, scopes=["config:read", scope])).json()
        refused = admin.post(f"{OWN}/{made['id']}/rotate")
        assert (refused.status_code, refused.json()["message"]) == (403, message)
        assert own.post(f"{OWN}/{made['id']}/rotate").status_code == 200
        assert admin.delete(f"{OWN}/{made['id']}").status_code == 200


def test_the_items_of_the_list_are_read(world: factories.World) -> None:
    owner = signed_in(world.owner)
    made = owner.post(OWN, body(world)).json()
    listed = owner.get(OWN).json()
    [item] = listed["_links"]["items"]
    assert owner.get(item["href"]).json() == listed["tokens"][0]
    assert "token" not in owner.get(item["href"]).json()
    assert signed_in(world.member).get(item["href"]).status_code == 403
    assert owner.delete(f"{OWN}/{made['id']}").status_code == 200
    assert owner.get(item["href"]).status_code == 404


def test_tokens_of_others_are_for_platform_admins(world: factories.World) -> None:
    for user in (world.member, world.tenant_admin, world.stranger):
        client = signed_in(user)
        assert client.get(OWN).status_code == 403
        assert client.post(OWN, body(world)).status_code == 403
        assert client.delete(f"{OWN}/1").status_code == 403
    admin = signed_in(world.platform_admin)
    made = admin.post(OWN, body(world, scopes=["cache-admin"])).json()
    assert made["owner"] == "owner@example.org"
    assert len(admin.get(OWN).json()["tokens"]) == 1
    assert (
        admin.post("/users/member@example.org/tokens", body(world, scopes=["cache-admin"])).status_code == 403
    )
    assert admin.get("/users/unknown@example.org/tokens").status_code == 404
    assert admin.delete(f"{OWN}/{made['id']}").status_code == 200


def test_a_token_makes_none_that_may_do_more_than_itself(world: factories.World) -> None:
    admin, path, tenant = world.platform_admin, "/users/admin@example.org/tokens", str(world.tenant.pk)
    narrow = ApiClient(factories.pat_token(admin, "users:write", "config:read", tenants=[tenant]))
    assert narrow.post(path, body(world)).status_code == 201
    for beyond in (
        {"scopes": ["config:write"]},
        {"tenants": [str(world.stranger_tenant.pk)]},
        {"tenants": ["*"]},
        {"accounts": [str(world.account.pk)]},
    ):
        assert narrow.post(path, body(world, **beyond)).status_code == 403, beyond
    without_scope = ApiClient(factories.pat_token(admin, "config:read", tenants=["*"]))
    assert without_scope.post(path, body(world)).status_code == 403
    bound = factories.pat_token(
        admin, "users:write", "config:read", tenants=["*"], endpoints=[{"methods": [], "path": "/users/*"}]
    )
    assert ApiClient(bound).post(path, body(world)).status_code == 403


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"name": ""}, "/name"),
        ({"name": "x" * 101}, "/name"),
        ({"scopes": []}, "/scopes"),
        ({"scopes": ["admin"]}, "/scopes/0"),
        ({"tenants": ["3f2b8f0c-6d2f-4f0e-9a55-0d6f6d1d9f11", "x"]}, "/tenants/1"),
        ({"tenants": ["*", "3f2b8f0c-6d2f-4f0e-9a55-0d6f6d1d9f11"]}, "/tenants"),
        ({"tenants": ["3f2b8f0c-6d2f-4f0e-9a55-0d6f6d1d9f11"]}, "/tenants"),
        ({"accounts": ["3f2b8f0c-6d2f-4f0e-9a55-0d6f6d1d9f11"]}, "/accounts"),
        ({"endpoints": [{"methods": ["FETCH"], "path": "/"}]}, "/endpoints/0/methods/0"),
        ({"endpoints": [{"methods": ["GET"]}]}, "/endpoints/0/path"),
        ({"endpoints": [{"path": "users"}]}, "/endpoints/0/path"),
        ({"expiresAt": "2020-01-01T00:00:00Z"}, "/expiresAt"),
        ({"expiresAt": "2099-01-01T00:00:00"}, "/expiresAt"),
        ({"owner": "me"}, "/owner"),
    ],
)
def test_errors_are_named(world: factories.World, changes: dict[str, Any], path: str) -> None:
    answer = signed_in(world.platform_admin).post("/users/admin@example.org/tokens", body(world, **changes))
    assert answer.status_code == 400, answer.content
    assert answer.json()["details"][0]["path"] == path


class TestEndpoints:
    @pytest.mark.parametrize(
        ("endpoints", "allowed"),
        [
            ([], True),
            ([{"methods": ["GET"], "path": "/users"}], True),
            ([{"methods": [], "path": "/u*"}], True),
            ([{"path": "/users"}], True),
            ([{"methods": ["POST"], "path": "/users"}], False),
            ([{"methods": ["GET"], "path": "/users/*"}], False),
            ([{"methods": ["GET"], "path": "/tos"}, {"methods": ["GET"], "path": "/users"}], True),
        ],
    )
    def test_bind_a_token_to_methods_and_paths(
        self, world: factories.World, endpoints: list[dict[str, Any]], allowed: bool
    ) -> None:
        token = factories.pat_token(world.platform_admin, "users:read", tenants=["*"], endpoints=endpoints)
        assert ApiClient(token).get("/users").status_code == (200 if allowed else 403)

    @pytest.mark.parametrize(
        ("methods", "head", "get"), [(["GET"], 200, 200), (["HEAD"], 200, 403), (["POST"], 403, 403)]
    )
    def test_get_covers_head(self, world: factories.World, methods: list[str], head: int, get: int) -> None:
        endpoints = [{"methods": methods, "path": "/users"}]
        token = factories.pat_token(world.platform_admin, "users:read", tenants=["*"], endpoints=endpoints)
        client = ApiClient(token)
        assert (client.request("HEAD", "/users").status_code, client.get("/users").status_code) == (head, get)


def test_one_caller_creates_only_so_many_in_an_hour(world: factories.World, settings: Any) -> None:
    settings.PAT_LIMIT = "2 per hour"
    owner = signed_in(world.owner)
    answers = [owner.post(OWN, body(world)) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [201, 201, 429]
    assert 0 < int(answers[2].headers["Retry-After"]) <= 3600
    other = signed_in(world.tenant_admin)
    assert other.post(f"/users/{world.tenant_admin.email}/tokens", body(world)).status_code == 201


DAY = dt.timedelta(days=1)


def make_pat(world: World, *, ends_in: dt.timedelta, lasts: dt.timedelta) -> PersonalAccessToken:
    pat, _ = create_pat(owner=world.member, name="dbt <nightly>", scopes=[Scope.CONFIG_READ])
    ends_at = now() + ends_in
    PersonalAccessToken.objects.filter(pk=pat.pk).update(expires_at=ends_at, created_at=ends_at - lasts)
    pat.refresh_from_db()
    return pat


def test_one_mail_a_week_before_the_end(
    world: World, mailoutbox: list[EmailMultiAlternatives], settings: Any
) -> None:
    settings.DASHBOARD_URL = "https://dash.example.org/"
    pat = make_pat(world, ends_in=7 * DAY - dt.timedelta(minutes=1), lasts=30 * DAY)
    with sending():
        assert [mail_ending_pats() for _ in range(3)] == [1, 0, 0]
    (mail,) = mailoutbox
    assert (mail.to, mail.subject) == (
        ["member@example.org"],
        "Your personal access token “dbt <nightly>” ends soon",
    )
    html = str(mail.alternatives[0][0])
    for part in (str(mail.body), html):
        assert f"ends at {pat.expires_at:%Y-%m-%d %H:%M} UTC" in part
        assert f"({pat.prefix}…)" in part
        assert part.count("https://dash.example.org/#/account") == 1
    assert "“dbt <nightly>”" in str(mail.body)
    assert "dbt &lt;nightly&gt;" in html
    # A new secret does not change the end, so there is nothing new to say.
    assert rotate_pat(pat, grace=DAY, actor="x") is not None
    assert mail_ending_pats() == 0


@pytest.mark.parametrize(
    ("ends_in", "lasts"),
    [
        (7 * DAY + dt.timedelta(minutes=1), 365 * DAY),
        (-dt.timedelta(seconds=1), 365 * DAY),
        (DAY, 30 * DAY - dt.timedelta(seconds=1)),
        (DAY, DAY),
    ],
)
def test_no_mail_too_early_too_late_or_for_short_tokens(
    world: World, ends_in: dt.timedelta, lasts: dt.timedelta
) -> None:
    make_pat(world, ends_in=ends_in, lasts=lasts)
    assert mail_ending_pats() == 0


def test_no_mail_for_revoked_tokens_inactive_owners_or_without_a_mail_server(
    world: World, settings: Any
) -> None:
    assert end_pat(make_pat(world, ends_in=DAY, lasts=90 * DAY), actor="x")
    assert mail_ending_pats() == 0
    make_pat(world, ends_in=DAY, lasts=90 * DAY)
    settings.MAGIC_LINKS_ENABLED = False
    assert mail_ending_pats() == 0
    settings.MAGIC_LINKS_ENABLED = True
    world.member.is_active = False
    world.member.save()
    assert mail_ending_pats() == 0


def test_the_mail_is_put_into_the_outbox_with_the_mark(
    world: World, monkeypatch: pytest.MonkeyPatch, mailoutbox: list[EmailMultiAlternatives]
) -> None:
    """A worker that is killed between the two leaves neither."""
    for days in (1, 2):
        make_pat(world, ends_in=days * DAY, lasts=90 * DAY)

    def die(*_: Any) -> None:
        raise SystemExit

    with monkeypatch.context() as patch:
        patch.setattr("accounts.mailing.outbox.put", die)
        with pytest.raises(SystemExit):
            mail_ending_pats()
    assert not PersonalAccessToken.objects.exclude(end_mailed_at=None).exists()
    with sending():
        assert mail_ending_pats() == 2
    assert len(mailoutbox) == 2
