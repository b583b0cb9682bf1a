"""S12: roles of users and groups, in one cluster or all, in namespaces or below a cohort; with names, as declared objects."""

import uuid

import django.db.models.deletion
from django.db import migrations, models
from django.db.models import Q
from django.utils import timezone

import accounts.models.role

# Triggers of the audit hold back changes of the table while events of this transaction wait.
NAMES = """
UPDATE accounts_rolebinding b SET username = u.username, name = 'binding-' || b.id, uid = gen_random_uuid() FROM auth_user u WHERE u.id = b.user_id;
"""


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("accounts", "0009_cluster_modes")]

    operations = [
        migrations.AddField("rolebinding", "cluster", models.ForeignKey(blank=True, help_text="Empty: in every cluster.", null=True, on_delete=django.db.models.deletion.CASCADE, related_name="+", to="accounts.cluster")),
        migrations.AddField("rolebinding", "name", models.CharField(default=accounts.models.role._name, max_length=253)),
        migrations.AddField("rolebinding", "uid", models.UUIDField(default=uuid.uuid4, editable=False)),
        migrations.AddField("rolebinding", "labels", models.JSONField(blank=True, default=dict)),
        migrations.AddField("rolebinding", "annotations", models.JSONField(blank=True, default=dict)),
        migrations.AddField("rolebinding", "api_version", models.CharField(blank=True, default="", help_text="The version that a manifest of it was last applied with; `get` answers in the newest one.", max_length=64), preserve_default=False),
        migrations.AddField("rolebinding", "applied_set", models.CharField(blank=True, default="", help_text="The set that applied it last; pruning that set removes it.", max_length=253), preserve_default=False),
        migrations.AddField("rolebinding", "generation", models.BigIntegerField(default=1, help_text="Goes up with each change that the scheduler did not make.")),
        migrations.AddField("rolebinding", "created_at", models.DateTimeField(auto_now_add=True, default=timezone.now), preserve_default=False),
        migrations.AddField("rolebinding", "updated_at", models.DateTimeField(auto_now=True)),
        migrations.AddField("rolebinding", "deletion_requested_at", models.DateTimeField(blank=True, help_text="Set while it is in use: it goes when nothing holds it, as with Kueue's finalizer.", null=True)),
        migrations.AddField("rolebinding", "username", models.CharField(blank=True, default="", help_text="Either a user, or a group.", max_length=150), preserve_default=False),
        migrations.AddField("rolebinding", "group", models.CharField(blank=True, default="", max_length=150), preserve_default=False),
        migrations.AddField("rolebinding", "changed_by", models.CharField(blank=True, db_default="", default="", help_text="Who wrote it last, as events name them.", max_length=150)),
        migrations.AddField("rolebinding", "cohort", models.CharField(blank=True, default="", help_text="Of a queue admin: what is below this cohort may be changed.", max_length=253), preserve_default=False),
        migrations.RunSQL(NAMES, migrations.RunSQL.noop),
        migrations.RemoveConstraint("rolebinding", "role_binding_unique"),
        migrations.AlterModelOptions("rolebinding", options={"ordering": ["name"]}),
        migrations.RemoveField("rolebinding", "user"),
        migrations.AlterField("rolebinding", "role", models.CharField(choices=[("viewer", "viewer"), ("submitter", "submitter"), ("admin", "admin"), ("queue-admin", "queue-admin"), ("auditor", "auditor")], max_length=16)),
        migrations.AddConstraint("rolebinding", models.UniqueConstraint(fields=("cluster", "name"), name="role_binding_name", nulls_distinct=False)),
        migrations.AddConstraint("rolebinding", models.CheckConstraint(condition=(Q(username="") & ~Q(group="")) | (~Q(username="") & Q(group="")), name="role_binding_has_one_subject")),
        migrations.AddConstraint("rolebinding", models.CheckConstraint(condition=(Q(role="queue-admin") & ~Q(cohort="")) | (~Q(role="queue-admin") & Q(cohort="")), name="role_binding_cohort_of_queue_admin")),
        migrations.AddIndex("rolebinding", models.Index(fields=["username"], name="role_binding_username")),
    ]
