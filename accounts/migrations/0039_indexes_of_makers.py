"""Indexes of tokens and grants that a token or a session made."""

from __future__ import annotations

from typing import ClassVar

from django.db import migrations, models

from tenantadmin.lib.database.indexes import AddIndexWithoutLock


class Migration(migrations.Migration):
    atomic = False

    dependencies: ClassVar = [("accounts", "0038_proposals_and_makers")]

    operations: ClassVar = [
        AddIndexWithoutLock(
            model_name="permissiongrant",
            index=models.Index(
                condition=models.Q(("made_with__isnull", False)), fields=["made_with"], name="grant_made_with"
            ),
        ),
        AddIndexWithoutLock(
            model_name="personalaccesstoken",
            index=models.Index(
                condition=models.Q(("made_with__isnull", False)), fields=["made_with"], name="pat_made_with"
            ),
        ),
        AddIndexWithoutLock(
            model_name="personalaccesstoken",
            index=models.Index(
                condition=models.Q(("session__isnull", False)), fields=["session"], name="pat_of_session"
            ),
        ),
    ]
