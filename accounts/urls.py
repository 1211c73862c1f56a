from __future__ import annotations

from accounts import converters  # noqa: F401 - importing registers them
from accounts.api.accounts import AccountViewSet, DomainViewSet, FqdnViewSet, GrantViewSet
from accounts.api.credentials import PersonalAccessTokenViewSet, SessionViewSet
from accounts.api.history import AccountHistoryViewSet, ChangesViewSet, ConfigHistoryViewSet, EventViewSet
from accounts.api.invitations import AccessRequestViewSet, InvitationViewSet, OwnInvitationViewSet
from accounts.api.oauth import IntrospectionViewSet, OAuthViewSet, SigningKeyViewSet
from accounts.api.signin import SignInViewSet
from accounts.api.tenants import ConfigViewSet, TenantViewSet, WarehouseViewSet
from accounts.api.users import MembershipViewSet, RolesViewSet, UserViewSet
from accounts.routes import url_patterns

urlpatterns = url_patterns(
    UserViewSet,
    RolesViewSet,
    MembershipViewSet,
    PersonalAccessTokenViewSet,
    SessionViewSet,
    OwnInvitationViewSet,
    SigningKeyViewSet,
    OAuthViewSet,
    IntrospectionViewSet,
    SignInViewSet,
    TenantViewSet,
    InvitationViewSet,
    AccessRequestViewSet,
    ConfigViewSet,
    WarehouseViewSet,
    ConfigHistoryViewSet,
    ChangesViewSet,
    EventViewSet,
    AccountViewSet,
    AccountHistoryViewSet,
    DomainViewSet,
    FqdnViewSet,
    GrantViewSet,
)
