from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("logs", "0001_initial"),
    ]

    operations = [
        migrations.AddField(
            model_name="partition",
            name="hours",
            field=models.JSONField(default=dict),
        ),
    ]
