"""The append-only record of what is not a document. Contract: Events."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from tenantadmin.lib.database.months import MonthlyModel


class EventKind(models.TextChoices):
    """What happened, and its name on pages. The first word of the value is what it happened to."""

    SIGN_IN_LINK_REQUESTED = "sign-in.link-requested", "Sign-in link requested"
    SIGN_IN_SUCCEEDED = "sign-in.succeeded", "Signed in"
    SIGN_IN_FAILED = "sign-in.failed", "Sign-in failed"
    SESSION_ENDED = "session.ended", "Session ended"
    TOKEN_MINTED = "token.minted", "Token for requests issued"
    TOKEN_REFUSED = "token.refused", "Token for requests refused"
    PAT_CREATED = "pat.created", "Access token created"
    PAT_ROTATED = "pat.rotated", "Access token renewed"
    PAT_REVOKED = "pat.revoked", "Access token revoked"
    PASSWORD_CHANGED = "password.changed", "Password changed"
    SECOND_FACTOR_ADDED = "second-factor.added", "Second factor added"
    SECOND_FACTOR_REMOVED = "second-factor.removed", "Second factor removed"
    SECOND_FACTOR_RESET = "second-factor.reset", "Second factor reset by staff"
    IDENTITY_LINKED = "identity.linked", "Identity provider linked"
    IDENTITY_UNLINKED = "identity.unlinked", "Identity provider unlinked"
    USER_CREATED = "user.created", "User created"
    USER_CHANGED = "user.changed", "Name of a user changed"
    USER_ACTIVATED = "user.activated", "User activated"
    USER_DEACTIVATED = "user.deactivated", "User deactivated"
    USER_DELETED = "user.deleted", "User deleted"
    ROLES_CHANGED = "roles.changed", "Roles changed"
    MEMBERSHIP_ADDED = "membership.added", "Member added"
    MEMBERSHIP_CHANGED = "membership.changed", "Role of a member changed"
    MEMBERSHIP_REMOVED = "membership.removed", "Member removed"
    ACCESS_REQUESTED = "access.requested", "Access for staff requested"
    ACCESS_APPROVED = "access.approved", "Access for staff approved"
    ACCESS_DECLINED = "access.declined", "Access for staff declined"
    ACCESS_WITHDRAWN = "access.withdrawn", "Request for access withdrawn"
    TENANT_RESTORED = "tenant.restored", "Tenant restored"
    TENANT_ADOPTED = "tenant.adopted", "Tenant adopted"
    INVITATION_CREATED = "invitation.created", "Invitation created"
    INVITATION_ACCEPTED = "invitation.accepted", "Invitation accepted"
    INVITATION_DECLINED = "invitation.declined", "Invitation declined"
    INVITATION_WITHDRAWN = "invitation.withdrawn", "Invitation withdrawn"
    RIGHTS_PROPOSED = "rights.proposed", "Rights proposed"
    RIGHTS_CONFIRMED = "rights.confirmed", "Rights confirmed"
    GRANT_CREATED = "grant.created", "Permissions given"
    GRANT_REVOKED = "grant.revoked", "Permissions revoked"
    DOMAIN_ADDED = "domain.added", "Domain registered"
    DOMAIN_VERIFIED = "domain.verified", "Domain verified"
    DOMAIN_REMOVED = "domain.removed", "Domain removed"
    DIGEST_MAIL_CHANGED = "digest-mail.changed", "Digest mails changed"
    ALERT_CREATED = "alert.created", "Alert created"
    ALERT_CHANGED = "alert.changed", "Alert changed"
    ALERT_DELETED = "alert.deleted", "Alert deleted"
    ALERT_TESTED = "alert.tested", "Alert tested"
    PER_USER_TABLES_REMOVED = "per-user-tables.removed", "Tables no longer listed as per user"
    DRAFT_CREATED = "draft.created", "Draft of rules created"
    DRAFT_CHANGED = "draft.changed", "Draft of rules changed"
    DRAFT_DELETED = "draft.deleted", "Draft of rules deleted"
    REPLAY_REQUESTED = "replay.requested", "Replay requested"
    REPLAY_CANCELLED = "replay.cancelled", "Replay cancelled"
    REPLAY_REMOVED = "replay.removed", "Replay removed"
    RECOMMENDATIONS_REQUESTED = "recommendations.requested", "Search for recommendations begun"
    RECOMMENDATION_DISMISSED = "recommendation.dismissed", "Recommendation dismissed"
    RECOMMENDATION_REOPENED = "recommendation.reopened", "Recommendation reopened"
    QUERY_SAVED = "query.saved", "SQL saved"
    QUERY_DELETED = "query.deleted", "Saved SQL deleted"
    TERMS_PUBLISHED = "terms.published", "Terms published"
    TERMS_ACKNOWLEDGED = "terms.acknowledged", "Terms acknowledged"
    STAFF_ACTED = "staff.acted", "Staff acted"


def event_kinds() -> list[tuple[str, str]]:
    """Return the choices of `Event.kind`. Migrations name this function, so a new kind needs none."""
    return EventKind.choices


class Event(MonthlyModel):
    """One action or attempt of a user. The database refuses to change or delete the row.

    Emails and ids are plain values: events outlive what they are about.
    """

    retention: ClassVar[str] = "EVENT_RETENTION"

    kind = models.CharField(max_length=40, choices=event_kinds)
    #: The email of who did it, or the name of a command or job. Empty for an unknown caller.
    actor = models.CharField(max_length=320, blank=True)
    #: What it was done to: the email of a user, a domain's name, the hash of terms. Empty if unknown.
    subject = models.CharField(max_length=320, blank=True)
    #: Owners of the tenant, and owners of the account, may read the event.
    tenant_id = models.UUIDField(null=True)
    account_id = models.UUIDField(null=True)
    before = models.JSONField(null=True)
    after = models.JSONField(null=True)
    #: Why something was refused, or why staff did it.
    reason = models.TextField(blank=True)
    request_id = models.CharField(max_length=128)
    address = models.CharField(max_length=45, blank=True)

    class Meta:
        ordering = ("-at", "-id")
        indexes = (
            models.Index(fields=["-at", "-id"], name="event_newest"),
            models.Index(fields=["actor", "-at", "-id"], name="event_by_actor"),
            models.Index(fields=["subject", "-at", "-id"], name="event_on_subject"),
            models.Index(fields=["kind", "-at", "-id"], name="event_of_kind"),
            models.Index(
                fields=["tenant_id", "-at", "-id"],
                name="event_of_tenant",
                condition=models.Q(tenant_id__isnull=False),
            ),
            models.Index(
                fields=["account_id", "-at", "-id"],
                name="event_of_account",
                condition=models.Q(account_id__isnull=False),
            ),
        )

    def __str__(self) -> str:
        return f"{self.kind} {self.subject}".strip()
