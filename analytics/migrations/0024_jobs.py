"""The columns of jobs and messages. The two that are renamed keep their columns."""

from django.db import migrations, models

import django.db.models.functions.datetime
import tenantadmin.lib.core.timestamps


class Migration(migrations.Migration):
    dependencies = [("analytics", "0023_index_of_findings")]

    operations = [
        migrations.AlterField(
            "digestmail", "sent_at", models.DateTimeField(db_column="sent_at", null=True)
        ),
        migrations.RenameField("digestmail", "sent_at", "finished_at"),
        migrations.AlterField(
            "tenanthealth",
            "digests_due_at",
            models.DateTimeField(
                db_column="digests_due_at",
                db_index=True,
                default=tenantadmin.lib.core.timestamps.now,
                null=True,
            ),
        ),
        migrations.RenameField("tenanthealth", "digests_due_at", "due_at"),
        migrations.AddField(
            model_name='alert',
            name='attempts',
            field=models.PositiveSmallIntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name='digestmail',
            name='created_at',
            field=models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), default=tenantadmin.lib.core.timestamps.now),
        ),
        migrations.AddField(
            model_name='digestmail',
            name='error',
            field=models.TextField(blank=True, db_default='', default=''),
        ),
        migrations.AddField(
            model_name='digestmail',
            name='until',
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name='mining',
            name='attempts',
            field=models.PositiveSmallIntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name='mining',
            name='due_at',
            field=models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), default=tenantadmin.lib.core.timestamps.now),
        ),
        migrations.AddField(
            model_name='replayrun',
            name='attempts',
            field=models.PositiveSmallIntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name='replayrun',
            name='due_at',
            field=models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), default=tenantadmin.lib.core.timestamps.now),
        ),
        migrations.AddField(
            model_name='tenanthealth',
            name='attempts',
            field=models.PositiveSmallIntegerField(db_default=0, default=0),
        ),
        migrations.AlterField(
            model_name='alert',
            name='due_at',
            field=models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), default=tenantadmin.lib.core.timestamps.now),
        ),
        migrations.AlterField(
            model_name='alertdelivery',
            name='attempts',
            field=models.PositiveSmallIntegerField(db_default=0, default=0),
        ),
        migrations.AlterField(
            model_name='alertdelivery',
            name='created_at',
            field=models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), default=tenantadmin.lib.core.timestamps.now),
        ),
        migrations.AlterField(
            model_name='alertdelivery',
            name='due_at',
            field=models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), default=tenantadmin.lib.core.timestamps.now),
        ),
        migrations.AlterField(
            model_name='alertdelivery',
            name='error',
            field=models.TextField(blank=True, db_default='', default=''),
        ),
        migrations.AlterField(
            model_name='alertdelivery',
            name='until',
            field=models.DateTimeField(null=True),
        ),
        migrations.AlterField(
            model_name='digestmail',
            name='attempts',
            field=models.PositiveSmallIntegerField(db_default=0, default=0),
        ),
        migrations.AlterField(
            model_name='digestmail',
            name='due_at',
            field=models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), default=tenantadmin.lib.core.timestamps.now),
        ),
        migrations.AlterField(
            model_name='digestmail',
            name='state',
            field=models.CharField(choices=[('queued', 'Queued'), ('sending', 'Sending'), ('sent', 'Delivered'), ('skipped', 'Skipped'), ('failed', 'Failed')], default='queued', max_length=7),
        ),
    ]
