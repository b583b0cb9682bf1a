"""Apply and get for all kinds: the base of `manage.py apply`, `manage.py get` and REST's manifests/."""

from clusters.manifests.apply import ApplyResult, apply_documents, apply_manifests
from clusters.manifests.delete import delete_manifest, delete_manifests, require_deletions
from clusters.manifests.get import get_manifests, to_yaml
from clusters.manifests.kinds import has_version, kind_named

__all__ = [
    "ApplyResult",
    "apply_documents",
    "apply_manifests",
    "delete_manifest",
    "delete_manifests",
    "get_manifests",
    "has_version",
    "kind_named",
    "require_deletions",
    "to_yaml",
]
