from django.db import migrations


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0042_kinds_of_events'),
    ]

    operations = [
        migrations.AlterModelOptions(
            name='magiclink',
            options={'ordering': ('-created_at', '-id')},
        ),
        migrations.AlterModelOptions(
            name='personalaccesstoken',
            options={'ordering': ('-created_at', '-id')},
        ),
        migrations.AlterModelOptions(
            name='refreshtoken',
            options={'ordering': ('-created_at', '-id')},
        ),
    ]
