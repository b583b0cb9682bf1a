"""Decisions of mode shadow that agree out of turn are counted apart."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("scheduler", "0023_past_use_unaudited")]

    operations = [
        migrations.AddField(
            model_name="shadowcount",
            name="out_of_turn",
            field=models.PositiveIntegerField(
                db_default=0,
                default=0,
                help_text="Agreed decisions that kueueweb would have tried after other workloads.",
            ),
        )
    ]
