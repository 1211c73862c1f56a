"""The rows that the service is about: people, tokens, billing accounts, tenants and their history."""

from __future__ import annotations

from accounts.models.billing import Account, Domain, Fqdn, PermissionGrant
from accounts.models.events import Event
from accounts.models.history import Revision
from accounts.models.mails import Mail
from accounts.models.pending import AccessRequest, Invitation, InvitationRefusal, Proposal
from accounts.models.tenants import Tenant, TenantConfig
from accounts.models.tokens import MagicLink, PersonalAccessToken, RefreshToken
from accounts.models.users import AuditView, Membership, Snooze, User

__all__ = [
    "AccessRequest",
    "Account",
    "AuditView",
    "Domain",
    "Event",
    "Fqdn",
    "Invitation",
    "InvitationRefusal",
    "MagicLink",
    "Mail",
    "Membership",
    "PermissionGrant",
    "PersonalAccessToken",
    "Proposal",
    "RefreshToken",
    "Revision",
    "Snooze",
    "Tenant",
    "TenantConfig",
    "User",
]
