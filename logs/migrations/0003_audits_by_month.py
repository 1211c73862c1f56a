from django.db import migrations, models

import tenantadmin.lib.core.timestamps
from tenantadmin.lib.database.months import PartitionByMonth


class Migration(migrations.Migration):
    """Partition the audits by month, and keep the message of a refused query."""

    dependencies = [("logs", "0002_partition_hours")]

    operations = [
        migrations.AddField("queryrun", "message", models.TextField(blank=True, default="")),
        migrations.AlterField("logread", "at", models.DateTimeField(default=tenantadmin.lib.core.timestamps.now)),
        migrations.AlterField("queryrun", "at", models.DateTimeField(default=tenantadmin.lib.core.timestamps.now)),
        migrations.AddIndex("logread", models.Index(fields=["-at", "-id"], name="log_read_newest")),
        migrations.AddIndex("queryrun", models.Index(fields=["-at", "-id"], name="query_run_newest")),
        PartitionByMonth("logread"),
        PartitionByMonth("queryrun"),
    ]
