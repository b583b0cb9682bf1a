"""What the database itself guarantees: every outside change is noted, no decided slice exceeds its card, decisions are partitioned.

The triggers are statement-level, so bulk SQL, COPY and the admin are caught as well as the ORM. A transaction that runs
`SET LOCAL kueueweb.unnoticed = 'on'` is the engine's or the pusher's own and notes nothing.
"""

from django.db import migrations

# Each function reads the transition table `changed_rows`: the new rows of an INSERT or UPDATE, the old ones of a DELETE.
FUNCTIONS = """
CREATE FUNCTION kueueweb_unnoticed() RETURNS boolean LANGUAGE sql STABLE AS
$$ SELECT coalesce(current_setting('kueueweb.unnoticed', true), '') = 'on' $$;

CREATE FUNCTION kueueweb_raise_configuration_generation(cluster_ids bigint[]) RETURNS void LANGUAGE sql AS
$$ UPDATE accounts_cluster SET configuration_generation = configuration_generation + 1 WHERE id = ANY (cluster_ids) $$;

CREATE FUNCTION kueueweb_note_named() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF kueueweb_unnoticed() THEN RETURN NULL; END IF;
    INSERT INTO scheduler_change (cluster_id, kind, object_id, key) SELECT cluster_id, TG_ARGV[0], id, name FROM changed_rows;
    PERFORM kueueweb_raise_configuration_generation(ARRAY(SELECT DISTINCT cluster_id FROM changed_rows));
    RETURN NULL;
END $$;

CREATE FUNCTION kueueweb_note_namespaced() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF kueueweb_unnoticed() THEN RETURN NULL; END IF;
    INSERT INTO scheduler_change (cluster_id, kind, object_id, key)
        SELECT cluster_id, TG_ARGV[0], id, namespace || '/' || name FROM changed_rows;
    PERFORM kueueweb_raise_configuration_generation(ARRAY(SELECT DISTINCT cluster_id FROM changed_rows));
    RETURN NULL;
END $$;

CREATE FUNCTION kueueweb_note_workload() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF kueueweb_unnoticed() THEN RETURN NULL; END IF;
    INSERT INTO scheduler_change (cluster_id, kind, object_id, key)
        SELECT cluster_id, 'workload', id, namespace || '/' || name FROM changed_rows;
    RETURN NULL;
END $$;

-- The pod sets that come with a new workload need no note of their own: the workload's note covers them.
CREATE FUNCTION kueueweb_note_pod_set() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF kueueweb_unnoticed() THEN RETURN NULL; END IF;
    UPDATE queues_workload SET generation = generation + 1 WHERE id IN (SELECT workload_id FROM changed_rows);
    RETURN NULL;
END $$;

CREATE FUNCTION kueueweb_note_quota() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    groups bigint[];
BEGIN
    IF kueueweb_unnoticed() THEN RETURN NULL; END IF;
    IF TG_TABLE_NAME = 'queues_resourcegroup' THEN
        UPDATE queues_clusterqueue SET generation = generation + 1 WHERE id IN (SELECT cluster_queue_id FROM changed_rows);
        UPDATE queues_cohort SET generation = generation + 1 WHERE id IN (SELECT cohort_id FROM changed_rows);
        RETURN NULL;
    END IF;
    groups := ARRAY(SELECT DISTINCT resource_group_id FROM changed_rows);
    UPDATE queues_clusterqueue SET generation = generation + 1
        WHERE id IN (SELECT cluster_queue_id FROM queues_resourcegroup WHERE id = ANY (groups));
    UPDATE queues_cohort SET generation = generation + 1
        WHERE id IN (SELECT cohort_id FROM queues_resourcegroup WHERE id = ANY (groups));
    RETURN NULL;
END $$;

CREATE FUNCTION kueueweb_note_device() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF kueueweb_unnoticed() THEN RETURN NULL; END IF;
    UPDATE gpus_node SET generation = generation + 1 WHERE id IN (SELECT node_id FROM changed_rows);
    RETURN NULL;
END $$;

CREATE FUNCTION kueueweb_note_cluster() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO scheduler_change (cluster_id, kind, object_id, key) VALUES (NEW.id, 'cluster', NEW.id, NEW.name);
    NEW.configuration_generation := OLD.configuration_generation + 1;
    RETURN NEW;
END $$;

CREATE FUNCTION kueueweb_raise_generation() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.generation := OLD.generation + 1;
    RETURN NEW;
END $$;

-- Only what we decide is refused: a card may shrink below what it holds, and what others hold is always stored. A card
-- in MIG mode is held by the places of its instances: their shares of the cores are rounded up, seven of an A100 make 105 %.
CREATE FUNCTION kueueweb_hold_device_capacity() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (NEW.used_slots > OLD.used_slots AND NEW.used_slots + NEW.external_slots > NEW.slots)
        OR (NEW.used_memory_mib > OLD.used_memory_mib AND NEW.used_memory_mib + NEW.external_memory_mib > NEW.memory_mib)
        OR (NEW.used_cores_percent > OLD.used_cores_percent AND NEW.mode <> 'mig'
            AND NEW.used_cores_percent + NEW.external_cores_percent > NEW.cores_percent)
    THEN
        RAISE EXCEPTION 'device % cannot hold another slice: % of % slots, % of % MiB, % of %% % cores would be taken',
            NEW.uuid, NEW.used_slots + NEW.external_slots, NEW.slots, NEW.used_memory_mib + NEW.external_memory_mib, NEW.memory_mib,
            NEW.used_cores_percent + NEW.external_cores_percent, NEW.cores_percent
            USING ERRCODE = 'check_violation', CONSTRAINT = 'device_capacity';
    END IF;
    RETURN NEW;
END $$;
"""

# table -> (function, argument)
NOTED = {
    "accounts_namespace": "kueueweb_note_named('namespace')",
    "queues_resourceflavor": "kueueweb_note_named('resourceflavor')",
    "queues_topology": "kueueweb_note_named('topology')",
    "queues_admissioncheck": "kueueweb_note_named('admissioncheck')",
    "queues_cohort": "kueueweb_note_named('cohort')",
    "queues_clusterqueue": "kueueweb_note_named('clusterqueue')",
    "queues_workloadpriorityclass": "kueueweb_note_named('workloadpriorityclass')",
    "gpus_node": "kueueweb_note_named('node')",
    "queues_runtimeclass": "kueueweb_note_named('runtimeclass')",
    "queues_localqueue": "kueueweb_note_namespaced('localqueue')",
    "queues_resourcequota": "kueueweb_note_namespaced('resourcequota')",
    "queues_limitrange": "kueueweb_note_namespaced('limitrange')",
    "queues_workload": "kueueweb_note_workload()",
    "queues_resourcegroup": "kueueweb_note_quota()",
    "queues_flavorquota": "kueueweb_note_quota()",
    "gpus_device": "kueueweb_note_device()",
    "gpus_deviceallocation": "kueueweb_note_device()",
}

GENERATIONS = (
    "queues_workload", "queues_clusterqueue", "queues_cohort", "queues_localqueue", "queues_resourcequota",
    "queues_limitrange", "queues_runtimeclass", "gpus_node",
)


def triggers() -> str:
    statements = []
    for table, function in NOTED.items():
        for event, rows in (("INSERT", "NEW"), ("UPDATE", "NEW"), ("DELETE", "OLD")):
            statements.append(
                f"CREATE TRIGGER kueueweb_note_{event.lower()} AFTER {event} ON {table} "
                f"REFERENCING {rows} TABLE AS changed_rows FOR EACH STATEMENT EXECUTE FUNCTION {function};"
            )
    statements += [
        "CREATE TRIGGER kueueweb_note_update AFTER UPDATE ON queues_podset REFERENCING NEW TABLE AS changed_rows "
        "FOR EACH STATEMENT EXECUTE FUNCTION kueueweb_note_pod_set();",
        "CREATE TRIGGER kueueweb_note_delete AFTER DELETE ON queues_podset REFERENCING OLD TABLE AS changed_rows "
        "FOR EACH STATEMENT EXECUTE FUNCTION kueueweb_note_pod_set();",
        "CREATE TRIGGER kueueweb_note_update BEFORE UPDATE ON accounts_cluster FOR EACH ROW WHEN ("
        "(OLD.configuration, OLD.mode, OLD.device_plugin_configuration) IS DISTINCT FROM "
        "(NEW.configuration, NEW.mode, NEW.device_plugin_configuration)) EXECUTE FUNCTION kueueweb_note_cluster();",
        "CREATE TRIGGER kueueweb_hold_device_capacity BEFORE UPDATE ON gpus_device "
        "FOR EACH ROW EXECUTE FUNCTION kueueweb_hold_device_capacity();",
    ]
    for table in GENERATIONS:
        statements.append(
            f"CREATE TRIGGER kueueweb_raise_generation BEFORE UPDATE ON {table} FOR EACH ROW "
            "WHEN (NOT kueueweb_unnoticed()) EXECUTE FUNCTION kueueweb_raise_generation();"
        )
    return "\n".join(statements)


# A composite key, since a partitioned table's key must contain what it is partitioned by. Rows that no month's partition
# takes go to the default one, so that a missed maintenance run never stops the scheduler.
DECISIONS = """
DROP TABLE scheduler_decision;
CREATE TABLE scheduler_decision (
    id bigint GENERATED BY DEFAULT AS IDENTITY,
    decided_at timestamp with time zone NOT NULL,
    cluster_name varchar(63) NOT NULL,
    epoch bigint NOT NULL,
    cycle bigint NOT NULL,
    action varchar(16) NOT NULL,
    namespace varchar(63) NOT NULL,
    workload_name varchar(253) NOT NULL,
    workload_uid uuid NOT NULL,
    cluster_queue_name varchar(253) NOT NULL,
    reason varchar(64) NOT NULL,
    message text NOT NULL,
    detail jsonb NOT NULL,
    PRIMARY KEY (id, decided_at)
) PARTITION BY RANGE (decided_at);
CREATE TABLE scheduler_decision_default PARTITION OF scheduler_decision DEFAULT;
CREATE INDEX decision_newest ON scheduler_decision (cluster_name, decided_at DESC);
CREATE INDEX decision_workload ON scheduler_decision (workload_uid, decided_at DESC);
"""


class Migration(migrations.Migration):
    dependencies = [("scheduler", "0001_initial"), ("accounts", "0001_initial"), ("queues", "0001_initial"), ("gpus", "0001_initial")]

    operations = [
        migrations.RunSQL(FUNCTIONS, migrations.RunSQL.noop),
        migrations.RunSQL(triggers(), migrations.RunSQL.noop),
        migrations.RunSQL(DECISIONS, migrations.RunSQL.noop),
    ]
