"""The rule on what a card can hold, with the columns under their new names."""

from django.db import migrations

FUNCTION = """
CREATE OR REPLACE FUNCTION kueueweb_hold_device_capacity() RETURNS trigger LANGUAGE plpgsql AS $$
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


class Migration(migrations.Migration):
    dependencies = [("scheduler", "0004_mig_capacity"), ("gpus", "0005_external_slices")]

    operations = [migrations.RunSQL(FUNCTION, migrations.RunSQL.noop)]
