from django.db import migrations

FORWARD = """
CREATE FUNCTION refuse_history_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'The change history is append-only: % is refused.', TG_OP
        USING ERRCODE = 'integrity_constraint_violation';
END
$$;
CREATE TRIGGER revision_append_only BEFORE UPDATE OR DELETE ON accounts_revision
    FOR EACH ROW EXECUTE FUNCTION refuse_history_change();
"""
BACKWARD = """
DROP TRIGGER revision_append_only ON accounts_revision;
DROP FUNCTION refuse_history_change();
"""


class Migration(migrations.Migration):
    """The database itself refuses to rewrite history (contract: Change history)."""

    dependencies = [("accounts", "0001_initial")]

    operations = [migrations.RunSQL(FORWARD, BACKWARD)]
