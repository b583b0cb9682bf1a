"""The counters of a queue begin at zero where a queue of that name was deleted a moment ago (Kueue clears the series of a
deleted queue at once)."""

from django.db import migrations

BEGIN = """
CREATE FUNCTION kueueweb_begin_cluster_queue_counts() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM scheduler_metriccount AS counted USING new_rows AS made
    WHERE counted.cluster_id = made.cluster_id AND counted.labels[1] = made.name
        AND counted.metric NOT IN ('attempt', 'created', 'batch_refused');
    RETURN NULL;
END $$;

CREATE FUNCTION kueueweb_begin_local_queue_counts() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE scheduler_metriccount AS counted SET labels = counted.labels[1:1] || ARRAY['', ''] || counted.labels[4:]
    FROM new_rows AS made
    WHERE counted.cluster_id = made.cluster_id AND counted.labels[2] = made.namespace AND counted.labels[3] = made.name
        AND cardinality(counted.labels) > 3;
    RETURN NULL;
END $$;

CREATE TRIGGER kueueweb_begin_counts AFTER INSERT ON queues_clusterqueue
    REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION kueueweb_begin_cluster_queue_counts();
CREATE TRIGGER kueueweb_begin_counts AFTER INSERT ON queues_localqueue
    REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION kueueweb_begin_local_queue_counts();
"""


class Migration(migrations.Migration):
    dependencies = [("scheduler", "0017_counts_of_first_starts"), ("queues", "0001_initial")]

    operations = [migrations.RunSQL(BEGIN, migrations.RunSQL.noop)]
