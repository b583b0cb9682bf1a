"""The patches of a plan: objects of configuration with some fields changed, as the whole manifests to apply."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from accounts.models import Cluster
from accounts.services.access import Access
from accounts.services.cluster_settings import CONFIGURATION_NAME
from clusters.manifests import get_manifests, has_version, kind_named
from foundation.exceptions import ManifestErrors, NotFound
from kinds.declaration import ManifestKind
from queues.manifests.documents import Document
from queues.services.owners import require_below
from scheduling.manifest import LocatedError, MistakeReason
from scheduling.manifest.merge_patch import merge_patch

_CONFIGURATION: Final = "Configuration"
_IDENTITY: Final = frozenset({"apiVersion", "kind", "metadata"})
_NAMES: Final = frozenset({"name", "namespace"})


def patched_documents(cluster: Cluster, patches: Sequence[Document], access: Access) -> list[Document]:
    """Return each patched object as a whole manifest: the current one, with the patch merged (RFC 7386). Its author
    needs the right to apply it. Raises `ManifestErrors`, `NotPermitted` and `NotFound`."""
    errors: list[LocatedError] = []
    found = [_patched(cluster, patch, access, errors) for patch in patches]
    if errors:
        raise ManifestErrors(errors)
    return [document for document in found if document is not None]


def _patched(cluster: Cluster, patch: Document, access: Access, errors: list[LocatedError]) -> Document | None:
    """Return the patched object; None if the patch is mistaken, which is added to `errors`."""
    content = patch.content
    kind = kind_named(str(content.get("kind") or ""))
    metadata = content.get("metadata")
    named: Mapping[str, Any] = metadata if isinstance(metadata, Mapping) else {}
    namespace, name = (str(named.get(field) or "") for field in ("namespace", "name"))
    mistakes = list(_mistakes(patch, kind, namespace, name))
    errors += mistakes
    if mistakes:
        return None
    _require_right(cluster, access, kind, namespace, name)
    present = _present(cluster, kind, namespace, name)
    version = present["apiVersion"]
    if content.get("apiVersion", version) != version:
        rule, remedy = "Unsupported value: a patch has the version that is read", f"Write {version}, or leave it out."
        errors.append(_mistake(patch, "apiVersion", content["apiVersion"], rule, remedy))
        return None
    merged = merge_patch(present, {key: value for key, value in content.items() if key != "kind"})
    return Document(patch.index, merged, patch.source)


def _mistakes(patch: Document, kind: ManifestKind, namespace: str, name: str) -> Iterator[LocatedError]:
    content = patch.content
    if not has_version(kind):
        rule, remedy = "Unsupported value: only configuration is patched", "Write its manifest in the section apply."
        yield _mistake(patch, "kind", content.get("kind"), rule, remedy)
        return
    if not name and kind.name != _CONFIGURATION:
        yield _mistake(patch, "metadata.name", None, "Required value", "Name the object.", MistakeReason.REQUIRED)
    if kind.namespaced and not namespace:
        remedy = f"Name the namespace of the {kind.name}."
        yield _mistake(patch, "metadata.namespace", None, "Required value", remedy, MistakeReason.REQUIRED)
    metadata = content.get("metadata")
    if not content.keys() - _IDENTITY and not (isinstance(metadata, Mapping) and metadata.keys() - _NAMES):
        yield _mistake(patch, "", None, "Required value: a field to change", reason=MistakeReason.REQUIRED)


def _mistake(
    patch: Document, path: str, value: Any, rule: str, remedy: str = "", reason: str = MistakeReason.INVALID
) -> LocatedError:
    return LocatedError(patch.index, path, value, rule, remedy, reason, patch.source)


def _require_right(cluster: Cluster, access: Access, kind: ManifestKind, namespace: str, name: str) -> None:
    """Require the right to apply the object, before it is read."""
    if not access.may_in_tree(kind.name):
        access.require("submit", kind.name, namespace)
    require_below(access, cluster, [(kind.name, namespace, name)])


def _present(cluster: Cluster, kind: ManifestKind, namespace: str, name: str) -> Mapping[str, Any]:
    """Return the manifest of the object. A cluster without a Configuration has an empty one."""
    is_settings = kind.name == _CONFIGURATION
    found = get_manifests(cluster, kind.name, CONFIGURATION_NAME if is_settings else name, namespace or None)
    if found:
        return {key: value for key, value in found[0].items() if key != "status"}
    if is_settings:
        return {"apiVersion": kind.versions[0], "kind": kind.name}
    key = f"{namespace}/{name}" if namespace else name
    raise NotFound(f"There is no {kind.name} {key} in cluster {cluster.name}.")
