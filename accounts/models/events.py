"""The append-only record of what is not a document. Contract: Events."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from tenantadmin.lib.database.months import MonthlyModel


class EventKind(models.TextChoices):
    """What happened. The first word is what it happened to."""

    SIGN_IN_LINK_REQUESTED = "sign-in.link-requested"
    SIGN_IN_SUCCEEDED = "sign-in.succeeded"
    SIGN_IN_FAILED = "sign-in.failed"
    SESSION_ENDED = "session.ended"
    TOKEN_MINTED = "token.minted"  # noqa: S105
    TOKEN_REFUSED = "token.refused"  # noqa: S105
    PAT_CREATED = "pat.created"
    PAT_ROTATED = "pat.rotated"
    PAT_REVOKED = "pat.revoked"
    PASSWORD_CHANGED = "password.changed"  # noqa: S105
    SECOND_FACTOR_ADDED = "second-factor.added"
    SECOND_FACTOR_REMOVED = "second-factor.removed"
    SECOND_FACTOR_RESET = "second-factor.reset"
    IDENTITY_LINKED = "identity.linked"
    IDENTITY_UNLINKED = "identity.unlinked"
    USER_CREATED = "user.created"
    USER_CHANGED = "user.changed"
    USER_ACTIVATED = "user.activated"
    USER_DEACTIVATED = "user.deactivated"
    USER_DELETED = "user.deleted"
    ROLES_CHANGED = "roles.changed"
    MEMBERSHIP_ADDED = "membership.added"
    MEMBERSHIP_CHANGED = "membership.changed"
    MEMBERSHIP_REMOVED = "membership.removed"
    ACCESS_REQUESTED = "access.requested"
    ACCESS_APPROVED = "access.approved"
    ACCESS_DECLINED = "access.declined"
    ACCESS_WITHDRAWN = "access.withdrawn"
    TENANT_RESTORED = "tenant.restored"
    INVITATION_CREATED = "invitation.created"
    INVITATION_ACCEPTED = "invitation.accepted"
    INVITATION_DECLINED = "invitation.declined"
    INVITATION_WITHDRAWN = "invitation.withdrawn"
    RIGHTS_PROPOSED = "rights.proposed"
    RIGHTS_CONFIRMED = "rights.confirmed"
    GRANT_CREATED = "grant.created"
    GRANT_REVOKED = "grant.revoked"
    DOMAIN_ADDED = "domain.added"
    DOMAIN_VERIFIED = "domain.verified"
    DOMAIN_REMOVED = "domain.removed"
    DIGEST_MAIL_CHANGED = "digest-mail.changed"
    ALERT_CREATED = "alert.created"
    ALERT_CHANGED = "alert.changed"
    ALERT_DELETED = "alert.deleted"
    ALERT_TESTED = "alert.tested"
    PER_USER_TABLES_REMOVED = "per-user-tables.removed"
    DRAFT_CREATED = "draft.created"
    DRAFT_CHANGED = "draft.changed"
    DRAFT_DELETED = "draft.deleted"
    REPLAY_REQUESTED = "replay.requested"
    REPLAY_CANCELLED = "replay.cancelled"
    REPLAY_REMOVED = "replay.removed"
    RECOMMENDATIONS_REQUESTED = "recommendations.requested"
    RECOMMENDATION_DISMISSED = "recommendation.dismissed"
    RECOMMENDATION_REOPENED = "recommendation.reopened"
    QUERY_SAVED = "query.saved"
    QUERY_DELETED = "query.deleted"
    TERMS_PUBLISHED = "terms.published"
    TERMS_ACKNOWLEDGED = "terms.acknowledged"
    STAFF_ACTED = "staff.acted"


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
