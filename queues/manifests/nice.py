"""`kueueweb.io/nice` of jobs and workloads: the amount that is subtracted from their multifactor priority."""

from queues.manifests import kueue_keys as keys
from scheduling.manifest import FieldReader, ObjectMeta
from scheduling.manifest.field_reader import INT32_MAX


def check_nice(top: FieldReader, meta: ObjectMeta) -> None:
    """Check the annotation that lowers a multifactor priority. Only a queue's weights can raise a priority."""
    value = meta.annotations.get(keys.NICE)
    if value is not None and not (value.isascii() and value.isdigit() and int(value) <= INT32_MAX):
        place = top.at(f"metadata.annotations[{keys.NICE}]")
        top.report.error(place, value, f"must be a whole number of at most {INT32_MAX}, in quotes")
