from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    # The table may be large, and workers write to it meanwhile.
    atomic = False

    dependencies = [
        ('analytics', '0010_jobs_under_way'),
    ]

    operations = [
        migrations.AddField(
            model_name='mergedrollup',
            name='version',
            field=models.PositiveIntegerField(db_default=3),
        ),
        AddIndexConcurrently(
            model_name='dayrollup',
            index=models.Index(fields=['version'], name='day_rollup_version'),
        ),
    ]
