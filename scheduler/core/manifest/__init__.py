"""Reading manifests field by field, so that every mistake is found in one pass and located."""

from scheduler.core.manifest.errors import LocatedError, MistakeReason, Report
from scheduler.core.manifest.fields import Fields
from scheduler.core.manifest.metadata import ObjectMeta, read_metadata, write_metadata

__all__ = ["Fields", "LocatedError", "MistakeReason", "ObjectMeta", "Report", "read_metadata", "write_metadata"]
