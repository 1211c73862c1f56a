from django.db import migrations, models

import accounts.models.events


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0041_assessments'),
    ]

    operations = [
        migrations.AlterField(
            model_name='event',
            name='kind',
            field=models.CharField(choices=accounts.models.events.event_kinds, max_length=40),
        ),
    ]
