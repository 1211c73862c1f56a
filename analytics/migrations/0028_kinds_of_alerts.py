from django.db import migrations, models

import analytics.models.watch


class Migration(migrations.Migration):

    dependencies = [
        ('analytics', '0027_assessments'),
    ]

    operations = [
        migrations.AlterField(
            model_name='alert',
            name='kind',
            field=models.CharField(choices=analytics.models.watch.alert_kinds, max_length=16),
        ),
    ]
