"""Reading manifests field by field, so that every mistake is found in one pass and located."""

from scheduling.manifest.errors import LocatedError, MistakeReason, Report
from scheduling.manifest.fields import Fields
from scheduling.manifest.metadata import ObjectMeta, read_metadata, write_metadata

__all__ = ["Fields", "LocatedError", "MistakeReason", "ObjectMeta", "Report", "read_metadata", "write_metadata"]
