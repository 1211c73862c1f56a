"""Personal access tokens end at most two years ahead, and can be rotated."""

from __future__ import annotations

from typing import ClassVar

from django.db import migrations, models

#: Tokens without an end, and tokens that end later than a new one may, end two years after this migration.
_END_ENDLESS = """
    UPDATE accounts_personalaccesstoken
       SET expires_at = now() + interval '2 years'
     WHERE expires_at IS NULL OR expires_at > now() + interval '2 years'
"""


class Migration(migrations.Migration):
    dependencies: ClassVar = [("accounts", "0023_canonical_addresses")]

    operations: ClassVar = [
        migrations.RunSQL(_END_ENDLESS, migrations.RunSQL.noop),
        migrations.AlterField(
            model_name="personalaccesstoken", name="expires_at", field=models.DateTimeField()
        ),
        migrations.AddField(
            model_name="personalaccesstoken",
            name="secret_number",
            field=models.PositiveIntegerField(db_default=1, default=1, editable=False),
        ),
        migrations.AddField(
            model_name="personalaccesstoken",
            name="previous_digest",
            field=models.BinaryField(editable=False, max_length=32, null=True, unique=True),
        ),
        migrations.AddField(
            model_name="personalaccesstoken",
            name="previous_ends_at",
            field=models.DateTimeField(editable=False, null=True),
        ),
        migrations.AlterField(
            model_name="event",
            name="kind",
            field=models.CharField(choices=[
                    ("sign-in.link-requested", "Sign In Link Requested"),
                    ("sign-in.succeeded", "Sign In Succeeded"),
                    ("sign-in.failed", "Sign In Failed"),
                    ("session.ended", "Session Ended"),
                    ("token.minted", "Token Minted"),
                    ("token.refused", "Token Refused"),
                    ("pat.created", "Pat Created"),
                    ("pat.rotated", "Pat Rotated"),
                    ("pat.revoked", "Pat Revoked"),
                    ("password.changed", "Password Changed"),
                    ("second-factor.added", "Second Factor Added"),
                    ("second-factor.removed", "Second Factor Removed"),
                    ("second-factor.reset", "Second Factor Reset"),
                    ("identity.linked", "Identity Linked"),
                    ("identity.unlinked", "Identity Unlinked"),
                    ("user.created", "User Created"),
                    ("user.changed", "User Changed"),
                    ("user.activated", "User Activated"),
                    ("user.deactivated", "User Deactivated"),
                    ("user.deleted", "User Deleted"),
                    ("roles.changed", "Roles Changed"),
                    ("membership.added", "Membership Added"),
                    ("membership.changed", "Membership Changed"),
                    ("membership.removed", "Membership Removed"),
                    ("grant.created", "Grant Created"),
                    ("grant.revoked", "Grant Revoked"),
                    ("domain.added", "Domain Added"),
                    ("domain.verified", "Domain Verified"),
                    ("domain.removed", "Domain Removed"),
                    ("digest-mail.changed", "Digest Mail Changed"),
                    ("draft.created", "Draft Created"),
                    ("draft.changed", "Draft Changed"),
                    ("draft.deleted", "Draft Deleted"),
                    ("replay.requested", "Replay Requested"),
                    ("replay.cancelled", "Replay Cancelled"),
                    ("replay.removed", "Replay Removed"),
                    ("recommendations.requested", "Recommendations Requested"),
                    ("recommendation.dismissed", "Recommendation Dismissed"),
                    ("recommendation.reopened", "Recommendation Reopened"),
                    ("query.saved", "Query Saved"),
                    ("query.deleted", "Query Deleted"),
                    ("terms.published", "Terms Published"),
                    ("terms.acknowledged", "Terms Acknowledged"),
                    ("staff.acted", "Staff Acted"),
                ], max_length=40),
        ),
    ]
