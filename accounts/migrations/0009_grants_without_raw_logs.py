"""Grants no longer hold `logs:read` and `logs:query`: raw logs and SQL are for members."""

from django.db import migrations

_REMOVE = """
    UPDATE accounts_permissiongrant
       SET permissions = array_remove(array_remove(permissions, 'logs:read'), 'logs:query')
     WHERE permissions && ARRAY['logs:read', 'logs:query']::varchar[]
"""


class Migration(migrations.Migration):
    dependencies = [("accounts", "0008_sessions_and_epochs")]

    operations = [migrations.RunSQL(_REMOVE, migrations.RunSQL.noop)]
