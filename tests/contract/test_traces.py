"""Every operation that writes leaves an event or a revision. Contract: Events, Change history."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pytest
from django.core.cache import cache

from accounts.access.credentials import create_pat, create_refresh_token
from accounts.access.scopes import ALL_SCOPES, Scope
from accounts.assessments import ensure_assessment
from accounts.billing.domains import register_domain
from accounts.limited_access import request_access
from accounts.models import Event, PermissionGrant, Revision
from analytics.models import DigestFrequency, DigestPreference
from analytics.watch.preferences import unsubscribe_token
from tests import factories
from tests.conftest import ApiClient
from tests.operations import routes
from tosapp.publishing import publish

if TYPE_CHECKING:
    from django.core.mail import EmailMessage

pytestmark = pytest.mark.django_db

#: Operations without a trace, and why.
WITHOUT: Final = {
    "validateRules": "writes nothing",
    "parseWarehouse": "writes nothing",
    "verifyDocument": "writes nothing",
    "queryLogs": "has a row of its own in the audit of queries",
    "createMarker": "a marker is its own record: who invalidated what, when",
    "replaceMarker": "as createMarker; sent by the Gateway for each statement that changes data",
    "deleteMarker": "as replaceMarker",
    "invalidateRules": "as replaceMarker",
    "replaceCacheMetadata": "describes what the Gateway has cached; sent for each entry of its cache",
    "replaceManyCacheMetadata": "as replaceCacheMetadata",
    "deleteCacheMetadata": "as replaceCacheMetadata",
    "notifyLogs": "describes objects that the Gateway wrote; sent for each hour of logs",
    "createDraft": "a draft is not in force; publishing it is a revision",
    "replaceDraft": "as createDraft",
    "deleteDraft": "as createDraft",
    "rebaseDraft": "as createDraft",
    "explainRequest": "writes nothing",
    "explainLoggedRequest": "writes nothing",
    "introspectToken": "writes nothing",
    "requestReplay": "computes from the log and changes nothing else; its row says who asked",
    "cancelReplay": "as requestReplay",
    "requestRecommendations": "as requestReplay",
    "draftRecommendation": "as createDraft",
    "draftRecommendations": "as createDraft",
    "previewInvalidation": "writes nothing",
    "previewTableInvalidation": "writes nothing",
    "invalidateTables": "as createMarker",
}

ALERT: Final = {
    "name": "Errors",
    "kind": "errors",
    "channels": [{"type": "webhook", "url": "https://hooks.example.org/a"}],
}

#: The first sign-in makes an account and a tenant, whose documents have revisions. A restored tenant has its
#: documents back, and an adopted one has them from an assessment.
BOTH: Final = {"verifyMagicLink", "restoreTenant", "adoptAssessment"}


@dataclass(frozen=True, slots=True)
class Ask:
    """A request, sent by a platform admin who is signed in unless ``client`` is given."""

    method: str
    path: str
    body: Any = None
    client: ApiClient | None = None


@dataclass(frozen=True, slots=True)
class Stage:
    """The world, a platform admin's tokens, and the mail that was sent."""

    world: factories.World
    admin: ApiClient
    wildcard: ApiClient
    outbox: list[EmailMessage]

    @property
    def tenant(self) -> str:
        return f"/config/tenants/{self.world.tenant.pk}"

    @property
    def account(self) -> str:
        return f"/config/accounts/{self.world.account.pk}"

    @property
    def member(self) -> str:
        return f"/users/{self.world.member.email}"

    def membership(self, role: str) -> list[dict[str, str]]:
        return [{"tenantId": str(self.world.tenant.pk), "role": role}]

    def pat(self) -> Any:
        return create_pat(owner=self.world.member, name="x", scopes=[Scope.CONFIG_READ])

    def session(self) -> int:
        return create_refresh_token(user=self.world.member)[0].pk

    def domain(self) -> str:
        register_domain(account_id=self.world.account.pk, name="example.org", actor="x")
        return f"{self.account}/domains/example.org"

    def new_account(self) -> str:
        body = {"name": "New", "owners": [self.world.member.email]}
        return f"/config/accounts/{self.admin.post('/config/accounts', body).json()['accountId']}"

    def link(self) -> str:
        ApiClient().post("/auth/magic-link", {"email": "ada@example.org"})
        (token,) = re.findall(r"\?t=(\S+)", str(self.outbox[-1].body))
        return str(token)

    def draft(self) -> str:
        address = f"{self.tenant}/rules/drafts"
        return f"{address}/{self.admin.post(address, {'rules': []}).json()['draftId']}"

    def deleted_tenant(self) -> Ask:
        self.admin.delete(self.tenant)
        return Ask("POST", f"{self.tenant}/restore")

    def assessment(self) -> Ask:
        tenant = ensure_assessment({"tenantName": "History"}, owner=self.world.owner.email, actor="x")
        return Ask("POST", f"/config/tenants/{tenant}/adopt", {"accountId": str(self.world.account.pk)})

    def recommendation(self, action: str, body: Any = None, **fields: Any) -> Ask:
        found = factories.recommendation(self.world.tenant, **fields)
        address = f"/tenants/{self.world.tenant.pk}/recommendations/{found.pk}"
        return Ask("POST", f"{address}/{action}", body, self.wildcard)

    def grant(self) -> PermissionGrant:
        return PermissionGrant.objects.create(
            grantee=self.world.member,
            resource="tenant",
            resource_id=self.world.tenant.pk,
            permissions=["config:read"],
        )

    def invitation(self, email: str) -> str:
        invitations = f"{self.tenant}/invitations"
        body = {"email": email, "role": "member"}
        return str(ApiClient(factories.sign_in(self.world.owner)).post(invitations, body).json()["id"])

    def alert(self, method: str, action: str = "", body: Any = None) -> Ask:
        alerts = f"/tenants/{self.world.tenant.pk}/alerts"
        return Ask(method, f"{alerts}/{self.admin.post(alerts, ALERT).json()['id']}{action}", body)

    def answer(self, action: str) -> Ask:
        stranger = self.world.stranger.email
        path = f"/users/{stranger}/invitations/{self.invitation(stranger)}/{action}"
        return Ask("POST", path, None, ApiClient(factories.sign_in(self.world.stranger)))

    def answer_staff(self, how: str) -> Ask:
        asked = request_access(self.world.platform_admin, tenant_id=self.world.tenant.pk, hours=1)
        owner = ApiClient(factories.sign_in(self.world.owner))
        return Ask("POST", f"{self.tenant}/access-requests/{asked.pk}/{how}", None, owner)

    def unsubscribe_token(self) -> str:
        DigestPreference.objects.create(
            user=self.world.member, tenant=self.world.tenant, frequency=DigestFrequency.DAILY
        )
        return unsubscribe_token(user_id=self.world.member.pk, tenant_id=self.world.tenant.pk)

    def acknowledgement(self) -> Ask:
        publish("# Terms", actor="x")
        client = ApiClient(factories.sign_in(self.world.member))
        return Ask("POST", f"{self.member}/tos", {"markdown": "# Terms"}, client)


#: A request for each operation that writes something.
REQUESTS: Final[dict[str, Callable[[Stage], Ask]]] = {
    "replaceTenantRules": lambda it: Ask("PUT", f"{it.tenant}/rules", {"rules": []}),
    "restoreRules": lambda it: Ask("POST", f"{it.tenant}/rules/history/0/restore"),
    "publishDraft": lambda it: Ask("POST", f"{it.draft()}/publish"),
    "acceptRecommendation": lambda it: it.recommendation("accept"),
    "dismissRecommendation": lambda it: it.recommendation("dismiss", {"reason": "We must not."}),
    "reopenRecommendation": lambda it: it.recommendation("reopen", state="dismissed"),
    "replaceTenantConfig": lambda it: Ask("PUT", f"{it.tenant}/config", {"tenantName": "New"}),
    "restoreConfig": lambda it: Ask("POST", f"{it.tenant}/config/history/0/restore"),
    "createTenant": lambda it: Ask(
        "POST", "/config/tenants", {"accountId": str(it.world.account.pk), "tenantName": "New"}
    ),
    "deleteTenant": lambda it: Ask("DELETE", it.tenant),
    "restoreTenant": lambda it: it.deleted_tenant(),
    "adoptAssessment": lambda it: it.assessment(),
    "createAccount": lambda it: Ask(
        "POST", "/config/accounts", {"name": "New", "owners": [it.world.member.email]}
    ),
    "replaceAccount": lambda it: Ask(
        "PUT", it.account, {"name": "New", "owners": [it.world.owner.email], "plan": "enterprise"}
    ),
    "deleteAccount": lambda it: Ask("DELETE", it.new_account()),
    "registerDomain": lambda it: Ask("POST", f"{it.account}/domains", {"domain": "example.org"}),
    "verifyDomain": lambda it: Ask("POST", f"{it.domain()}/verify", {"manual": True}),
    "deleteDomain": lambda it: Ask("DELETE", it.domain()),
    "createGrant": lambda it: Ask(
        "POST",
        "/config/grants",
        {
            "grantee": it.world.member.email,
            "resource": "tenant",
            "resourceId": str(it.world.tenant.pk),
            "permissions": ["config:read"],
        },
    ),
    "revokeGrant": lambda it: Ask("DELETE", f"/config/grants/{it.grant().pk}"),
    "replaceUser": lambda it: Ask("PUT", it.member, {"displayName": "New"}),
    "deleteUser": lambda it: Ask("DELETE", it.member),
    "replaceRoles": lambda it: Ask("PUT", f"{it.member}/roles", {"primary": "guest", "scopes": []}),
    "mergeRoles": lambda it: Ask("PATCH", f"{it.member}/roles", {"primary": "guest"}),
    "replaceMemberships": lambda it: Ask("PUT", f"{it.member}/tenants", it.membership("admin")),
    "appendMemberships": lambda it: Ask(
        "PATCH", f"/users/{it.world.stranger.email}/tenants", it.membership("member")
    ),
    "createInvitation": lambda it: Ask(
        "POST", f"{it.tenant}/invitations", {"email": "ada@example.org", "role": "member"}
    ),
    "withdrawInvitation": lambda it: Ask(
        "DELETE", f"{it.tenant}/invitations/{it.invitation('ada@example.org')}"
    ),
    "acceptInvitation": lambda it: it.answer("accept"),
    "declineInvitation": lambda it: it.answer("decline"),
    "createAlert": lambda it: Ask("POST", f"/tenants/{it.world.tenant.pk}/alerts", ALERT),
    "replaceAlert": lambda it: it.alert("PUT", body=ALERT),
    "deleteAlert": lambda it: it.alert("DELETE"),
    "testAlert": lambda it: it.alert("POST", "/test"),
    "testAlertChannels": lambda it: Ask("POST", f"/tenants/{it.world.tenant.pk}/alerts/test", ALERT),
    "rotateAlertSecret": lambda it: it.alert("POST", "/rotate"),
    "approveAccess": lambda it: it.answer_staff("approve"),
    "declineAccess": lambda it: it.answer_staff("decline"),
    "createPersonalAccessToken": lambda it: Ask(
        "POST",
        f"{it.member}/tokens",
        {"name": "x", "scopes": ["config:read"], "tenants": [str(it.world.tenant.pk)]},
    ),
    "rotatePersonalAccessToken": lambda it: Ask("POST", f"{it.member}/tokens/{it.pat()[0].pk}/rotate"),
    "revokePersonalAccessToken": lambda it: Ask("DELETE", f"{it.member}/tokens/{it.pat()[0].pk}"),
    "exchangeToken": lambda it: Ask(
        "POST", "/oauth/token", {"grant_type": "pat_exchange", "pat": it.pat()[1]}
    ),
    "endSession": lambda it: Ask("DELETE", f"{it.member}/sessions/{it.session()}"),
    "endSessions": lambda it: Ask("DELETE", f"{it.member}/sessions"),
    "logout": lambda it: Ask(
        "POST", "/auth/logout", {"token": create_refresh_token(user=it.world.member)[1]}
    ),
    "requestMagicLink": lambda _: Ask("POST", "/auth/magic-link", {"email": "ada@example.org"}),
    "verifyMagicLink": lambda it: Ask("POST", "/auth/magic-link/verify", {"token": it.link()}),
    "publishTos": lambda it: Ask("POST", "/tos", {"markdown": "# New terms"}, it.wildcard),
    "setDigestPreference": lambda it: Ask(
        "PUT",
        f"{it.member}/digests/{it.world.tenant.pk}",
        {"frequency": "daily"},
        ApiClient(factories.sign_in(it.world.member)),
    ),
    "unsubscribe": lambda it: Ask("POST", f"/digests/unsubscribe?t={it.unsubscribe_token()}"),
    "acknowledgeTos": lambda it: it.acknowledgement(),
}


@pytest.fixture
def stage(world: factories.World, mailoutbox: list[EmailMessage]) -> Stage:
    cache.clear()
    return Stage(
        world=world,
        admin=ApiClient(factories.sign_in(world.platform_admin)),
        wildcard=ApiClient(factories.pat_token(world.platform_admin, *ALL_SCOPES, tenants=["*"])),
        outbox=mailoutbox,
    )


def test_every_operation_that_writes_is_asked_here_or_left_out_with_its_reason() -> None:
    writing = {route.operation for route in routes() if route.method != "GET"}
    assert {*REQUESTS, *WITHOUT} == writing
    assert not REQUESTS.keys() & WITHOUT.keys()


@pytest.mark.parametrize("operation", REQUESTS)
def test_an_operation_that_writes_leaves_an_event_or_a_revision(stage: Stage, operation: str) -> None:
    ask = REQUESTS[operation](stage)
    revisions = Revision.objects.count()
    answer = (ask.client or stage.admin).request(ask.method, ask.path, ask.body)
    assert 200 <= answer.status_code < 300, answer.content
    has_event = Event.objects.filter(request_id=answer["X-Request-Id"]).exists()
    has_revision = Revision.objects.count() > revisions
    assert has_event or has_revision
    assert (has_event and has_revision) == (operation in BOTH)
