"""The functions that records of use are made with keep their plans: in SQL each call planned its query anew, which was
half of what ending a workload cost."""

from django.db import migrations

FUNCTIONS = """
-- The flavor of a pod set's devices: that of the first resource which every node has not.
CREATE OR REPLACE FUNCTION kueueweb_device_flavor(flavors jsonb) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN (SELECT value FROM jsonb_each_text(flavors)
        ORDER BY key IN ('cpu', 'memory', 'ephemeral-storage', 'pods'), key LIMIT 1);
END $$;

-- {flavor: {resource: amount}} that a workload holds. A slice of a device counts as the larger of its shares, in the flavor
-- of its pod set's devices.
CREATE OR REPLACE FUNCTION kueueweb_held(held_by bigint) RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (SELECT coalesce(jsonb_object_agg(flavor, amounts), '{}') FROM (
        SELECT flavor, jsonb_object_agg(resource, amount) AS amounts FROM (
            SELECT flavor, resource, sum(amount) AS amount FROM (
                SELECT pod_set.flavors ->> usage.key AS flavor, usage.key AS resource, usage.value::numeric AS amount
                FROM queues_podset AS pod_set, jsonb_each_text(pod_set.resource_usage) AS usage
                WHERE pod_set.workload_id = held_by AND pod_set.flavors ? usage.key
                UNION ALL
                SELECT coalesce(kueueweb_device_flavor(pod_set.flavors), ''), 'device',
                    round(greatest(slice.memory_mib::numeric / greatest(device.memory_mib, 1),
                        slice.cores_percent::numeric / greatest(device.cores_percent, 1)), 6)
                FROM gpus_deviceallocation AS slice
                    JOIN gpus_device AS device ON device.id = slice.device_id
                    LEFT JOIN queues_podset AS pod_set
                        ON pod_set.workload_id = slice.workload_id AND pod_set.name = slice.pod_set
                WHERE slice.workload_id = held_by AND slice.source = 'decided'
            ) AS each_one GROUP BY flavor, resource
        ) AS each_resource GROUP BY flavor
    ) AS each_flavor);
END $$;

CREATE OR REPLACE FUNCTION kueueweb_condition(conditions jsonb, wanted text) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN (SELECT condition FROM jsonb_array_elements(conditions) AS condition
        WHERE condition ->> 'type' = wanted LIMIT 1);
END $$;
"""


class Migration(migrations.Migration):
    dependencies = [("history", "0003_audit_prices")]

    operations = [migrations.RunSQL(FUNCTIONS, migrations.RunSQL.noop)]
