from django.db import migrations

FORWARD = """
CREATE TRIGGER revision_append_only_truncate BEFORE TRUNCATE ON accounts_revision
    EXECUTE FUNCTION refuse_history_change();
"""
BACKWARD = "DROP TRIGGER revision_append_only_truncate ON accounts_revision;"


class Migration(migrations.Migration):
    """Row triggers do not see a TRUNCATE, which would remove all history at once."""

    dependencies = [("accounts", "0019_lists_at_scale")]

    operations = [migrations.RunSQL(FORWARD, BACKWARD)]
