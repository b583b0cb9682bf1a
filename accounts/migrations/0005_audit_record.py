"""The audit: a table that takes new lines and changes none.

Its columns that say who acts fill themselves, so that whatever writes a line, a trigger or a service, says it: from the
setting `kueueweb.actor` of the connection, which a request makes (`accounts.services.actor`), and from the connection.
"""

from django.db import migrations, models

TABLE = """
CREATE FUNCTION kueueweb_actor() RETURNS jsonb LANGUAGE sql STABLE AS
$$ SELECT coalesce(nullif(current_setting('kueueweb.actor', true), ''), '{}')::jsonb $$;

CREATE FUNCTION kueueweb_process() RETURNS text LANGUAGE sql STABLE AS
$$ SELECT current_setting('application_name') || ' (database account ' || session_user || ')' $$;

CREATE TABLE accounts_auditrecord (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
    username text NOT NULL DEFAULT coalesce(kueueweb_actor() ->> 'username', ''),
    credential text NOT NULL DEFAULT coalesce(kueueweb_actor() ->> 'credential', ''),
    process text NOT NULL DEFAULT kueueweb_process(),
    address text NOT NULL DEFAULT coalesce(kueueweb_actor() ->> 'address', ''),
    user_agent text NOT NULL DEFAULT coalesce(kueueweb_actor() ->> 'user_agent', ''),
    request_id text NOT NULL DEFAULT coalesce(kueueweb_actor() ->> 'request_id', ''),
    request text NOT NULL DEFAULT coalesce(kueueweb_actor() ->> 'request', ''),
    verb text NOT NULL,
    kind text NOT NULL,
    cluster_name text NOT NULL DEFAULT '',
    namespace text NOT NULL DEFAULT '',
    name text NOT NULL DEFAULT '',
    before jsonb,
    after jsonb,
    reason text NOT NULL DEFAULT coalesce(kueueweb_actor() ->> 'reason', ''),
    message text NOT NULL DEFAULT ''
);
CREATE INDEX auditrecord_at ON accounts_auditrecord (at);
CREATE INDEX auditrecord_username ON accounts_auditrecord (username, id DESC);
CREATE INDEX auditrecord_object ON accounts_auditrecord (kind, namespace, name, id DESC);
CREATE INDEX auditrecord_namespace ON accounts_auditrecord (namespace, id DESC);

-- The lines that the log stream has not written yet: committed lines only, so that none is passed over.
CREATE TABLE accounts_auditunsent (record_id bigint PRIMARY KEY);

CREATE FUNCTION kueueweb_queue_audit() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO accounts_auditunsent (record_id) SELECT id FROM new_records;
    RETURN NULL;
END $$;
CREATE TRIGGER kueueweb_queue_audit AFTER INSERT ON accounts_auditrecord REFERENCING NEW TABLE AS new_records
    FOR EACH STATEMENT EXECUTE FUNCTION kueueweb_queue_audit();

CREATE FUNCTION kueueweb_guard_audit() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    forget_before timestamptz := nullif(current_setting('kueueweb.forget_audit_before', true), '');
BEGIN
    IF TG_OP = 'DELETE' AND OLD.at < forget_before AND OLD.at < now() - interval '1 day' THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION 'the audit cannot be changed: kueueweb_forget_audit(days) removes what is older'
        USING ERRCODE = 'insufficient_privilege';
END $$;
CREATE TRIGGER kueueweb_guard_audit BEFORE UPDATE OR DELETE ON accounts_auditrecord
    FOR EACH ROW EXECUTE FUNCTION kueueweb_guard_audit();
CREATE TRIGGER kueueweb_guard_audit_truncate BEFORE TRUNCATE ON accounts_auditrecord
    FOR EACH STATEMENT EXECUTE FUNCTION kueueweb_guard_audit();

CREATE FUNCTION kueueweb_forget_audit(days integer) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    forget_before timestamptz := now() - make_interval(days => days);
    forgotten bigint;
BEGIN
    PERFORM set_config('kueueweb.forget_audit_before', forget_before::text, true);
    DELETE FROM accounts_auditrecord WHERE at < forget_before;
    GET DIAGNOSTICS forgotten = ROW_COUNT;
    PERFORM set_config('kueueweb.forget_audit_before', '', true);
    RETURN forgotten;
END $$;
"""

DROP = """
DROP TABLE accounts_auditrecord, accounts_auditunsent;
DROP FUNCTION kueueweb_forget_audit, kueueweb_guard_audit, kueueweb_queue_audit, kueueweb_process, kueueweb_actor;
"""


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0004_token_last_used'),
    ]

    operations = [
        migrations.RunSQL(TABLE, DROP),
        migrations.CreateModel(
            name='AuditRecord',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('at', models.DateTimeField()),
                ('username', models.CharField(help_text='Empty: nobody is logged in, or a process acts by itself.', max_length=150)),
                ('credential', models.CharField(help_text='session, password, or token and its name.', max_length=150)),
                ('process', models.CharField(help_text='The process, and the account of the database.', max_length=128)),
                ('address', models.CharField(max_length=64)),
                ('user_agent', models.CharField(max_length=256)),
                ('request_id', models.CharField(max_length=64)),
                ('request', models.TextField(help_text='Method and path.')),
                ('verb', models.CharField(choices=[('create', 'create'), ('update', 'update'), ('delete', 'delete'), ('login', 'login'), ('logout', 'logout'), ('failed-login', 'failed-login'), ('refused', 'refused')], max_length=16)),
                ('kind', models.CharField(max_length=63)),
                ('cluster_name', models.CharField(max_length=63)),
                ('namespace', models.CharField(max_length=63)),
                ('name', models.CharField(max_length=512)),
                ('before', models.JSONField(help_text='What changed, as it was; null for what was created.', null=True)),
                ('after', models.JSONField(help_text='What changed, as it is; null for what was deleted.', null=True)),
                ('reason', models.TextField(help_text='Why, as the user says.')),
                ('message', models.TextField(help_text='Why it was refused.')),
            ],
            options={
                'db_table': 'accounts_auditrecord',
                'ordering': ['-id'],
                'managed': False,
            },
        ),
    ]
