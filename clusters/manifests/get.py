"""Get: rows as manifests that apply again unchanged."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import yaml

from accounts.kinds.configuration import write_configuration
from accounts.models import Cluster
from accounts.services import cluster_settings
from accounts.services.object_status import STATUS_READERS
from clusters.jobs.registry import JOB_KINDS
from clusters.manifests.kinds import kind_named
from gpus.manifests import write_node
from gpus.models import Node
from gpus.services.node_manifests import node_spec
from kinds.declaration import Kind
from queues.kinds import KINDS as CONFIGURATION_KINDS
from queues.models import Job, Workload
from queues.services.configuration import manifest_of, objects
from queues.services.workload_objects import workload_manifest


def get_manifests(
    cluster: Cluster,
    kind: str,
    name: str | None = None,
    namespace: str | None = None,
    *,
    visible: Collection[str] | None = None,
) -> list[dict[str, Any]]:
    """Return the objects of a kind (named as in kubectl, short names included), in order: the object of a name, those
    of a namespace, or all. `visible` are the namespaces that are read, so that a tenant's request does not cost more
    because others have many objects; None means all. It does not affect kinds without a namespace. Raises
    `InvalidRequest` for an unknown kind. An unknown name gives an empty list."""
    found = kind_named(kind)
    filters: dict[str, Any] = {}
    if name:
        filters["name"] = name
    if namespace and found.namespaced:
        filters["namespace"] = namespace
    if visible is not None and found.namespaced:
        filters["namespace__in"] = visible
    return list(_readers(found.name)(cluster, filters))


def _readers(kind: str) -> Callable[[Cluster, dict[str, Any]], Iterable[dict[str, Any]]]:
    if kind in CONFIGURATION_KINDS:
        found = CONFIGURATION_KINDS[kind]
        return lambda cluster, filters: configuration_manifests(
            cluster, found, list(objects(cluster, found).filter(**filters))
        )
    if kind in JOB_KINDS:
        return lambda cluster, filters: (
            _ordered(row.manifest)
            for row in Job.objects.filter(
                cluster=cluster, kind=kind, deletion_requested_at=None, group__deletion_requested_at=None, **filters
            )
        )
    return {"Workload": _workloads, "Node": _nodes, "ConfigMap": _config_maps, "Configuration": _configuration}[kind]


def configuration_manifests(cluster: Cluster, kind: Kind, rows: Sequence[Any]) -> Iterator[dict[str, Any]]:
    """Return the manifests of rows of a configuration kind, whose specs' data are prefetched, with Kueue's status for
    kinds that have one."""
    reader = STATUS_READERS.get(kind.name)
    statuses = reader(cluster, rows) if reader is not None and rows else [{}] * len(rows)
    for row, status in zip(rows, statuses, strict=True):
        manifest = manifest_of(row)
        yield {**manifest, "status": status} if status else manifest


_ORDER = ("apiVersion", "kind", "name", "namespace", "metadata", "labels", "annotations", "image", "spec")


def _ordered(value: Any) -> Any:
    """Sort the fields, whose order the database does not keep: identifying fields come first, the others by name."""
    if isinstance(value, Mapping):
        keys = sorted(value, key=lambda key: (_ORDER.index(key) if key in _ORDER else len(_ORDER), key))
        return {key: _ordered(value[key]) for key in keys}
    return [_ordered(item) for item in value] if isinstance(value, list) else value


def _workloads(cluster: Cluster, filters: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield workloads. A variant (concurrent admission) is included only if it is requested by name: applied elsewhere,
    it would be a job of its own."""
    jobs = {} if "name" in filters else {"parent_name": ""}
    rows = (
        Workload.objects.filter(cluster=cluster, **jobs, **filters)
        .select_related("job")
        .prefetch_related("pod_sets")
        .order_by("namespace", "name")
    )
    return (_ordered(workload_manifest(row)) for row in rows)


def _nodes(cluster: Cluster, filters: dict[str, Any]) -> Iterator[dict[str, Any]]:
    return (write_node(node_spec(row)) for row in Node.objects.filter(cluster=cluster, **filters))


def _config_maps(cluster: Cluster, filters: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for key, found in sorted(cluster_settings.device_plugin_objects(cluster).items()):
        manifest = found["manifest"]
        metadata = manifest["metadata"]
        if _is_asked_for(metadata, filters):
            read = cluster_settings.setting_metadata(cluster, "ConfigMap", key, manifest)
            yield {**manifest, "metadata": {**metadata, **read}}


def _is_asked_for(metadata: Mapping[str, Any], filters: Mapping[str, Any]) -> bool:
    """Return whether an object without a row matches the filters of a query."""
    return all(
        metadata.get("namespace") in wanted if lookup == "namespace__in" else metadata.get(lookup) == wanted
        for lookup, wanted in filters.items()
    )


def _configuration(cluster: Cluster, filters: dict[str, Any]) -> Iterator[dict[str, Any]]:
    row = Cluster.objects.get(pk=cluster.pk)
    name = filters.get("name", cluster_settings.CONFIGURATION_NAME)
    if row.configuration and name == cluster_settings.CONFIGURATION_NAME and "namespace" not in filters:
        read = cluster_settings.setting_metadata(cluster, "Configuration", name, row.configuration)
        yield _ordered(write_configuration(row.configuration) | {"metadata": {"name": name, **read}})


class _Dumper(yaml.SafeDumper):
    """Indents lists under their key, and quotes text that another reader would take for a number."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        """Indent lists, too."""
        super().increase_indent(flow, False)

    def ignore_aliases(self, data: Any) -> bool:
        """Return True: no alias is written, because none is read."""
        return True


_Dumper.add_implicit_resolver(  # YAML 1.2 reads 1e3 as a number; PyYAML does not
    "tag:yaml.org,2002:float", re.compile(r"[-+]?[0-9.]+[eE][-+]?[0-9]+"), list("-+.0123456789")
)
# The same holds for 0o7.
_Dumper.add_implicit_resolver("tag:yaml.org,2002:int", re.compile(r"[-+]?0o[0-7]+"), list("-+0"))


def to_yaml(manifests: Iterable[Mapping[str, Any]]) -> str:
    """Return the manifests as one multi-document text."""
    return "---\n".join(
        yaml.dump(dict(manifest), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=2**16)
        for manifest in manifests
    )
