"""Sessions record how they were proven. Of earlier ones, the way of the sign-in is known."""

from __future__ import annotations

from typing import ClassVar

import django.db.models.deletion
from django.db import migrations, models

_WAY_OF_SIGN_IN = """
    UPDATE accounts_refreshtoken
       SET amr = jsonb_build_object(CASE provider WHEN '' THEN 'link' ELSE 'provider' END,
                                    extract(epoch FROM created_at))
"""


class Migration(migrations.Migration):
    dependencies: ClassVar = [
        ("accounts", "0021_sql_engine"),
        ("mfa", "0003_authenticator_type_uniq"),
    ]

    operations: ClassVar = [
        migrations.AddField(
            model_name="refreshtoken",
            name="amr",
            field=models.JSONField(
                db_default=models.Value({}, models.JSONField()), default=dict, editable=False
            ),
        ),
        migrations.AddField(
            model_name="refreshtoken",
            name="second_factor",
            field=models.ForeignKey(
                editable=False,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to="mfa.authenticator",
            ),
        ),
        migrations.RunSQL(_WAY_OF_SIGN_IN, migrations.RunSQL.noop),
    ]
