"""Reads manifests field by field, so that one pass finds every mistake and its path."""

from scheduling.manifest.errors import LocatedError, MistakeReason, ValidationReport
from scheduling.manifest.field_reader import FieldReader
from scheduling.manifest.metadata import ObjectMeta, read_metadata, write_metadata

__all__ = [
    "FieldReader",
    "LocatedError",
    "MistakeReason",
    "ObjectMeta",
    "ValidationReport",
    "read_metadata",
    "write_metadata",
]
