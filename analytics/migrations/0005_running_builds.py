from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    # The table may be large, and workers write to it meanwhile.
    atomic = False

    dependencies = [
        ('analytics', '0004_tenant_health'),
    ]

    operations = [
        AddIndexConcurrently(
            model_name='build',
            index=models.Index(condition=models.Q(('state', 'running')), fields=['tenant_id', 'period'], name='build_running'),
        ),
    ]
