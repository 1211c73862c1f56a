from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('logs', '0013_indexes_of_queries_of_people'),
    ]

    operations = [
        migrations.AddField(
            model_name='partition',
            name='table_names',
            field=models.JSONField(null=True),
        ),
    ]
