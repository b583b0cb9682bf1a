"""Every change of a row that a user may make is written to the audit, whatever makes it: REST, an apply, the admin, SQL.

Configuration is always recorded. Jobs, workloads, nodes and devices are recorded when somebody acts: what the scheduler,
the watcher and the pusher do by themselves is in the decisions and events, and costs nothing here but looking at a setting.
A ClusterQueue or Cohort is recorded at the end of a transaction, once and with its quotas, which are rows of their own.
"""

from django.db import migrations

FUNCTIONS = """
-- Our own workers and the watcher act for nobody, as long as no setting says for whom.
CREATE FUNCTION kueueweb_somebody_acts() RETURNS boolean LANGUAGE sql STABLE AS
$$ SELECT coalesce(current_setting('kueueweb.unnoticed', true), '') <> 'on'
    AND (coalesce(current_setting('kueueweb.actor', true), '') <> '' OR current_setting('application_name') NOT LIKE 'kueueweb service%') $$;

-- The columns that the object's author knows nothing of, and secrets.
CREATE FUNCTION kueueweb_audit_columns(row_ jsonb, kept text[]) RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN kept IS NULL
        THEN row_ - ARRAY['id', 'uid', 'cluster_id', 'generation', 'configuration_generation', 'created_at', 'updated_at',
            'last_login', 'date_joined', 'last_used', 'admission_fair_sharing', 'digest', 'salt', 'token_key', 'token_id']
        -- A job's manifest may hold secrets: that it has changed is what is recorded of it.
        ELSE (SELECT coalesce(jsonb_object_agg(key, CASE key WHEN 'manifest' THEN to_jsonb('md5 ' || md5(value::text)) ELSE value END), '{}')
            FROM jsonb_each(row_) WHERE key = ANY (kept)) END
$$;

CREATE FUNCTION kueueweb_audit_redacted(picture jsonb) RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$
    SELECT regexp_replace((CASE WHEN picture ? 'password' THEN picture || '{"password": "***"}' ELSE picture END)::text,
        '://[^/@"[:space:]]+@', '://***@', 'g')::jsonb
$$;

-- What one picture says otherwise than another; objects are compared key by key.
CREATE FUNCTION kueueweb_audit_difference(this jsonb, that jsonb) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN (SELECT coalesce(jsonb_object_agg(key, CASE
        WHEN jsonb_typeof(value) = 'object' AND jsonb_typeof(that -> key) = 'object'
        THEN kueueweb_audit_difference(value, that -> key) ELSE value END), '{}')
        FROM jsonb_each(this) WHERE value IS DISTINCT FROM that -> key);
END $$;

CREATE FUNCTION kueueweb_audit_cluster(table_ text, row_ jsonb) RETURNS text LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF table_ = 'accounts_cluster' THEN
        RETURN row_ ->> 'name';
    ELSIF table_ = 'gpus_device' THEN
        RETURN (SELECT c.name FROM accounts_cluster c JOIN gpus_node n ON n.cluster_id = c.id WHERE n.id = (row_ ->> 'node_id')::bigint);
    ELSIF row_ ? 'cluster_id' THEN
        RETURN coalesce((SELECT name FROM accounts_cluster WHERE id = (row_ ->> 'cluster_id')::bigint), '');
    END IF;
    RETURN '';
END $$;

-- What people call the object.
CREATE FUNCTION kueueweb_audit_name(table_ text, row_ jsonb) RETURNS text LANGUAGE plpgsql STABLE AS $$
DECLARE
    username_ text;
BEGIN
    IF table_ = 'auth_user' THEN
        RETURN row_ ->> 'username';
    ELSIF table_ = 'gpus_device' THEN
        RETURN row_ ->> 'uuid';
    ELSIF table_ IN ('auth_user_groups', 'auth_user_user_permissions', 'accounts_rolebinding') AND row_ ? 'user_id' THEN
        SELECT username INTO username_ FROM auth_user WHERE id = (row_ ->> 'user_id')::bigint;
        RETURN concat_ws('/', coalesce(username_, 'user ' || (row_ ->> 'user_id')), coalesce(
            (SELECT name FROM auth_group WHERE id = (row_ ->> 'group_id')::bigint),
            (SELECT codename FROM auth_permission WHERE id = (row_ ->> 'permission_id')::bigint), row_ ->> 'role'));
    ELSIF table_ = 'auth_group_permissions' THEN
        RETURN concat_ws('/', (SELECT name FROM auth_group WHERE id = (row_ ->> 'group_id')::bigint),
            (SELECT codename FROM auth_permission WHERE id = (row_ ->> 'permission_id')::bigint));
    ELSIF table_ = 'accounts_tokendetails' THEN
        RETURN concat_ws('/', coalesce((SELECT u.username FROM auth_user u JOIN knox_authtoken k ON k.user_id = u.id
            WHERE k.digest = row_ ->> 'token_id'), ''), coalesce(nullif(row_ ->> 'name', ''), row_ ->> 'id'));
    END IF;
    RETURN coalesce(row_ ->> 'name', row_ ->> 'id');
END $$;

-- Arguments of the triggers: the kind ('' : the column says it), and the columns that count ('' : all).
CREATE FUNCTION kueueweb_audit_rows() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    kept text[] := CASE WHEN TG_ARGV[1] <> '' THEN string_to_array(TG_ARGV[1], ',') END;
BEGIN
    IF kept IS NOT NULL AND NOT kueueweb_somebody_acts() THEN RETURN NULL; END IF;
    INSERT INTO accounts_auditrecord (verb, kind, cluster_name, namespace, name, before, after)
        SELECT CASE TG_OP WHEN 'INSERT' THEN 'create' ELSE 'delete' END, coalesce(nullif(TG_ARGV[0], ''), row_ ->> 'kind'),
            kueueweb_audit_cluster(TG_TABLE_NAME, row_), coalesce(row_ ->> 'namespace', ''), kueueweb_audit_name(TG_TABLE_NAME, row_),
            CASE TG_OP WHEN 'DELETE' THEN kueueweb_audit_redacted(kueueweb_audit_columns(row_, kept)) END,
            CASE TG_OP WHEN 'INSERT' THEN kueueweb_audit_redacted(kueueweb_audit_columns(row_, kept)) END
        FROM (SELECT to_jsonb(changed_rows) AS row_ FROM changed_rows) AS rows_
        -- The job's own line stands for the workload that it brings.
        WHERE NOT (TG_TABLE_NAME = 'queues_workload' AND TG_OP = 'INSERT' AND row_ ->> 'job_id' IS NOT NULL);
    RETURN NULL;
END $$;

CREATE FUNCTION kueueweb_audit_update() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    kept text[] := CASE WHEN TG_ARGV[1] <> '' THEN string_to_array(TG_ARGV[1], ',') END;
    row_ jsonb := to_jsonb(NEW);
    old_picture jsonb := kueueweb_audit_columns(to_jsonb(OLD), kept);
    new_picture jsonb := kueueweb_audit_columns(row_, kept);
BEGIN
    IF old_picture = new_picture THEN RETURN NULL; END IF;
    INSERT INTO accounts_auditrecord (verb, kind, cluster_name, namespace, name, before, after)
        VALUES ('update', coalesce(nullif(TG_ARGV[0], ''), row_ ->> 'kind'), kueueweb_audit_cluster(TG_TABLE_NAME, row_),
            coalesce(row_ ->> 'namespace', ''), kueueweb_audit_name(TG_TABLE_NAME, row_),
            kueueweb_audit_redacted(kueueweb_audit_difference(old_picture, new_picture)),
            kueueweb_audit_redacted(kueueweb_audit_difference(new_picture, old_picture)));
    RETURN NULL;
END $$;

-- What was recorded last of each object that has quotas: the edit that is recorded next is compared with it.
CREATE TABLE accounts_auditstate (object_uid uuid PRIMARY KEY, state jsonb NOT NULL);

-- One branch for each owner, so that each uses its index: with thousands of queues in one transaction a scan of all of
-- them for each would take minutes.
CREATE FUNCTION kueueweb_audit_quotas(owner_column text, owner_id bigint) RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
DECLARE
    groups bigint[];
BEGIN
    IF owner_column = 'cohort_id' THEN
        groups := ARRAY(SELECT id FROM queues_resourcegroup WHERE cohort_id = owner_id);
    ELSE
        groups := ARRAY(SELECT id FROM queues_resourcegroup WHERE cluster_queue_id = owner_id);
    END IF;
    RETURN jsonb_build_object(
        'resource_groups', (SELECT coalesce(jsonb_agg(jsonb_build_object('covered_resources', covered_resources, 'flavors', flavors)
            ORDER BY position), '[]') FROM queues_resourcegroup WHERE id = ANY (groups)),
        'quotas', (SELECT coalesce(jsonb_object_agg(q.flavor || ' ' || q.resource, jsonb_build_object('nominal_quota', q.nominal_quota,
            'borrowing_limit', q.borrowing_limit, 'lending_limit', q.lending_limit)), '{}')
            FROM queues_flavorquota q WHERE q.resource_group_id = ANY (groups)));
END $$;

-- An edit of a quota raises the generation of its owner (kueueweb_note_quota), so that its owner's row always fires this.
CREATE FUNCTION kueueweb_audit_owner() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    owner_column text := CASE TG_ARGV[0] WHEN 'Cohort' THEN 'cohort_id' ELSE 'cluster_queue_id' END;
    uid_ uuid := CASE TG_OP WHEN 'DELETE' THEN OLD.uid ELSE NEW.uid END;
    cluster_id_ bigint := CASE TG_OP WHEN 'DELETE' THEN OLD.cluster_id ELSE NEW.cluster_id END;
    name_ text := CASE TG_OP WHEN 'DELETE' THEN OLD.name ELSE NEW.name END;
    row_ jsonb;
    old_state jsonb;
    new_state jsonb;
BEGIN
    EXECUTE format('SELECT to_jsonb(t) FROM %I t WHERE id = $1', TG_TABLE_NAME) INTO row_
        USING CASE TG_OP WHEN 'DELETE' THEN OLD.id ELSE NEW.id END;
    IF row_ IS NOT NULL THEN
        new_state := kueueweb_audit_columns(row_, NULL) || kueueweb_audit_quotas(owner_column, (row_ ->> 'id')::bigint);
    END IF;
    SELECT state INTO old_state FROM accounts_auditstate WHERE object_uid = uid_;
    IF new_state IS NOT DISTINCT FROM old_state THEN RETURN NULL; END IF;
    IF new_state IS NULL THEN
        DELETE FROM accounts_auditstate WHERE object_uid = uid_;
    ELSE
        INSERT INTO accounts_auditstate VALUES (uid_, new_state) ON CONFLICT (object_uid) DO UPDATE SET state = excluded.state;
    END IF;
    INSERT INTO accounts_auditrecord (verb, kind, cluster_name, name, before, after)
        VALUES (CASE WHEN old_state IS NULL THEN 'create' WHEN new_state IS NULL THEN 'delete' ELSE 'update' END, TG_ARGV[0],
            coalesce((SELECT name FROM accounts_cluster WHERE id = cluster_id_), ''), name_,
            CASE WHEN new_state IS NULL THEN old_state WHEN old_state IS NOT NULL THEN kueueweb_audit_difference(old_state, new_state) END,
            CASE WHEN old_state IS NULL THEN new_state WHEN new_state IS NOT NULL THEN kueueweb_audit_difference(new_state, old_state) END);
    RETURN NULL;
END $$;

INSERT INTO accounts_auditstate
    SELECT uid, kueueweb_audit_columns(to_jsonb(q), NULL) || kueueweb_audit_quotas('cluster_queue_id', id) FROM queues_clusterqueue q
    UNION ALL SELECT uid, kueueweb_audit_columns(to_jsonb(c), NULL) || kueueweb_audit_quotas('cohort_id', id) FROM queues_cohort c;
"""

# table -> (kind, the columns that are recorded; none: all)
RECORDED = {
    "accounts_cluster": ("Cluster", ""),
    "accounts_namespace": ("Namespace", ""),
    "accounts_rolebinding": ("RoleBinding", ""),
    "accounts_tokendetails": ("Token", ""),
    "auth_group": ("Group", ""),
    "auth_group_permissions": ("GroupPermission", ""),
    "auth_user": ("User", ""),
    "auth_user_groups": ("GroupMember", ""),
    "auth_user_user_permissions": ("UserPermission", ""),
    "queues_admissioncheck": ("AdmissionCheck", ""),
    "queues_limitrange": ("LimitRange", ""),
    "queues_localqueue": ("LocalQueue", ""),
    "queues_priorityclass": ("PriorityClass", ""),
    "queues_resourceflavor": ("ResourceFlavor", ""),
    "queues_resourcequota": ("ResourceQuota", ""),
    "queues_runtimeclass": ("RuntimeClass", ""),
    "queues_topology": ("Topology", ""),
    "queues_workloadpriorityclass": ("WorkloadPriorityClass", ""),
    "gpus_device": ("Device", "cordoned,draining"),
    "gpus_node": ("Node", "labels,taints,cordoned,draining,unschedulable"),
    "queues_job": ("", "manifest,suspended,managed,deletion_requested_at"),
    "queues_workload": (
        "Workload",
        "queue_name,priority,priority_class_name,active,never_preempt,labels,annotations,status,deletion_requested_at,"
        "maximum_execution_seconds,submitted_by",
    ),
}
OWNERS = {"queues_clusterqueue": "ClusterQueue", "queues_cohort": "Cohort"}


def triggers() -> str:
    statements = []
    for table, (kind, columns) in RECORDED.items():
        for event, rows in (("INSERT", "NEW"), ("DELETE", "OLD")):
            statements.append(
                f"CREATE TRIGGER kueueweb_audit_{event.lower()} AFTER {event} ON {table} REFERENCING {rows} TABLE AS changed_rows "
                f"FOR EACH STATEMENT EXECUTE FUNCTION kueueweb_audit_rows('{kind}', '{columns}');"
            )
        # For each row, under a condition that the scheduler's own writes do not meet: it pays for no transition table.
        condition = "WHEN (kueueweb_somebody_acts()) " if columns else ""
        statements.append(
            f"CREATE TRIGGER kueueweb_audit_update AFTER UPDATE ON {table} FOR EACH ROW {condition}"
            f"EXECUTE FUNCTION kueueweb_audit_update('{kind}', '{columns}');"
        )
    for table, kind in OWNERS.items():
        statements.append(
            f"CREATE CONSTRAINT TRIGGER kueueweb_audit_owner AFTER INSERT OR UPDATE OR DELETE ON {table} "
            f"DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION kueueweb_audit_owner('{kind}');"
        )
    return "\n".join(statements)


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0005_audit_record"),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("gpus", "0001_initial"),
        ("knox", "0009_extend_authtoken_field"),
        ("queues", "0005_protection_columns"),
        ("scheduler", "0005_inadmissible"),
    ]

    operations = [
        migrations.RunSQL(FUNCTIONS, migrations.RunSQL.noop),
        migrations.RunSQL(triggers(), migrations.RunSQL.noop),
    ]
