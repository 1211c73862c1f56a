"""Serializers of requests on invitations. Contract: Invitations."""

from __future__ import annotations

from accounts.models.users import MembershipRole
from accounts.serializers.fields import EmailField
from tenantadmin.lib.http.serializers import OneOfField, StrictCharField, StrictSerializer


class InvitationBody(StrictSerializer):
    """Whom to invite, and as what. ``message`` is part of the mail."""

    email = EmailField()
    role = OneOfField(choices=MembershipRole.choices)
    message = StrictCharField(required=False, allow_blank=True, max_length=500, default="")
