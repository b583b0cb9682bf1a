"""The audit has one line for all workloads or jobs of a namespace that one request changes, in however many transactions.

`kueueweb.audit_together` names the request. Until it ends, each change is a part, committed with the change itself;
`kueueweb_join_audit` makes lines of the parts, also of those that a request which died has left behind.
"""

from django.db import migrations

FUNCTIONS = """
CREATE TABLE accounts_auditpart (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    together text NOT NULL,
    actor text NOT NULL,
    verb text NOT NULL,
    kind text NOT NULL,
    cluster_name text NOT NULL,
    namespace text NOT NULL,
    name text NOT NULL,
    before jsonb NOT NULL,
    after jsonb NOT NULL
);
CREATE INDEX accounts_auditpart_together ON accounts_auditpart (together);

CREATE OR REPLACE FUNCTION kueueweb_audit_update() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    kept text[] := CASE WHEN TG_ARGV[1] <> '' THEN string_to_array(TG_ARGV[1], ',') END;
    row_ jsonb := to_jsonb(NEW);
    old_picture jsonb := kueueweb_audit_columns(to_jsonb(OLD), kept);
    new_picture jsonb := kueueweb_audit_columns(row_, kept);
    together_ text := coalesce(current_setting('kueueweb.audit_together', true), '');
    kind_ text := coalesce(nullif(TG_ARGV[0], ''), row_ ->> 'kind');
    cluster_ text := kueueweb_audit_cluster(TG_TABLE_NAME, row_);
    namespace_ text := coalesce(row_ ->> 'namespace', '');
    name_ text := kueueweb_audit_name(TG_TABLE_NAME, row_);
    before_ jsonb;
    after_ jsonb;
BEGIN
    IF old_picture = new_picture THEN RETURN NULL; END IF;
    before_ := kueueweb_audit_redacted(kueueweb_audit_difference(old_picture, new_picture));
    after_ := kueueweb_audit_redacted(kueueweb_audit_difference(new_picture, old_picture));
    IF together_ <> '' THEN
        INSERT INTO accounts_auditpart (together, actor, verb, kind, cluster_name, namespace, name, before, after)
            VALUES (together_, coalesce(current_setting('kueueweb.actor', true), ''), lower(TG_OP), kind_, cluster_, namespace_, name_, before_, after_);
    ELSE
        INSERT INTO accounts_auditrecord (verb, kind, cluster_name, namespace, name, before, after)
            VALUES (lower(TG_OP), kind_, cluster_, namespace_, name_, before_, after_);
    END IF;
    RETURN NULL;
END $$;

-- The fields that all pictures have, with the same value.
CREATE FUNCTION kueueweb_audit_shared(pictures jsonb[]) RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$
    SELECT coalesce(jsonb_object_agg(key, value), '{}') FROM (
        SELECT key, min(value::text)::jsonb AS value FROM unnest(pictures) AS picture, jsonb_each(picture)
        GROUP BY key HAVING count(*) = cardinality(pictures) AND min(value::text) = max(value::text)
    ) AS found
$$;

CREATE FUNCTION kueueweb_join_audit(together_ text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    told bigint;
    present text := coalesce(current_setting('kueueweb.actor', true), '');
BEGIN
    -- Whoever comes second waits here, and finds no parts any more.
    PERFORM FROM accounts_auditpart WHERE together = together_ ORDER BY id FOR UPDATE;
    PERFORM set_config('kueueweb.actor', actor, true) FROM accounts_auditpart WHERE together = together_ LIMIT 1;
    INSERT INTO accounts_auditrecord (verb, kind, cluster_name, namespace, name, before, after)
        SELECT verb, kind, cluster_name, namespace, CASE WHEN many = 1 THEN first ELSE '' END,
            kueueweb_audit_shared(befores),
            CASE WHEN many = 1 THEN '{}' ELSE jsonb_build_object('count', many, 'names', names) END || kueueweb_audit_shared(afters)
        FROM (
            SELECT verb, kind, cluster_name, namespace, count(DISTINCT name) AS many, min(name) AS first,
                jsonb_agg(DISTINCT name) AS names, array_agg(before) AS befores, array_agg(after) AS afters
            FROM accounts_auditpart WHERE together = together_ GROUP BY verb, kind, cluster_name, namespace
        ) AS lines ORDER BY kind, cluster_name, namespace;
    GET DIAGNOSTICS told = ROW_COUNT;
    DELETE FROM accounts_auditpart WHERE together = together_;
    PERFORM set_config('kueueweb.actor', present, true);
    RETURN told;
END $$;
"""


class Migration(migrations.Migration):
    dependencies = [("scheduler", "0015_bulk_creations")]

    operations = [migrations.RunSQL(FUNCTIONS, migrations.RunSQL.noop)]
