from __future__ import annotations

from accounts import converters  # noqa: F401 - importing registers them
from accounts.api.access_requests import AccessRequestViewSet
from accounts.api.accounts import AccountViewSet
from accounts.api.config import ConfigViewSet, WarehouseViewSet
from accounts.api.domains import DomainViewSet
from accounts.api.events import EventViewSet
from accounts.api.fqdns import FqdnViewSet
from accounts.api.grants import GrantViewSet
from accounts.api.history import AccountHistoryViewSet, ChangesViewSet, ConfigHistoryViewSet
from accounts.api.introspection import IntrospectionViewSet
from accounts.api.invitations import InvitationViewSet, OwnInvitationViewSet
from accounts.api.keys import SigningKeyViewSet
from accounts.api.memberships import MembershipViewSet
from accounts.api.oauth import OAuthViewSet
from accounts.api.pats import PersonalAccessTokenViewSet
from accounts.api.roles import RolesViewSet
from accounts.api.sessions import SessionViewSet
from accounts.api.signin import SignInViewSet
from accounts.api.tenants import TenantViewSet
from accounts.api.users import UserViewSet
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
