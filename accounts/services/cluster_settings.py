"""Settings of a whole cluster: Kueue's Configuration, and the ConfigMaps of HAMi's device plugin."""

from collections.abc import Mapping, Sequence
from typing import Any

from accounts.events import request_push, wake_scheduler
from accounts.exceptions import MirroredFromCluster, NotFound
from accounts.models import Cluster, ClusterMode, DeviceBinding
from accounts.services.apply_result import Action


def cluster_named(name: str) -> Cluster:
    """The cluster of that name; raises `NotFound`."""
    try:
        return Cluster.objects.get(name=name)
    except Cluster.DoesNotExist:
        raise NotFound(f"There is no cluster named {name!r}.") from None


def require_not_mirrored(cluster: Cluster) -> None:
    """Raises `MirroredFromCluster` in the modes in which only the cluster itself changes what our rows say."""
    if cluster.is_mirrored:
        raise MirroredFromCluster(
            f"Cluster {cluster.name} is in mode {cluster.mode}: its objects are only shown here, and changed in the "
            "cluster only. Change them there, for example with kubectl, or have a cluster admin set mode schedule."
        )


def set_mode(cluster: Cluster, mode: ClusterMode) -> None:
    """What we do with the cluster from now on. The workers and the watcher follow within seconds."""
    Cluster.objects.exclude(mode=mode).filter(pk=cluster.pk).update(mode=mode)
    wake_scheduler(cluster.name)
    request_push(cluster.name)


def set_serves_kueue_objects(cluster: Cluster, *, serves: bool) -> None:
    """Whether Kueue's objects in the cluster and our rows follow each other while we decide there."""
    rows = Cluster.objects.exclude(serves_kueue_objects=serves).filter(pk=cluster.pk)
    rows.update(serves_kueue_objects=serves)
    request_push(cluster.name)


def set_device_binding(cluster: Cluster, binding: DeviceBinding) -> None:
    """Who binds pods with devices from now on; what waits at its gate already is bound as it was made to be."""
    Cluster.objects.exclude(device_binding=binding).filter(pk=cluster.pk).update(device_binding=binding)
    request_push(cluster.name)


def set_accepted_managers(cluster: Cluster, names: Sequence[str]) -> None:
    """Whose MultiKueue may run workloads in the cluster: it acts there with our account."""
    Cluster.objects.filter(pk=cluster.pk).update(accepts_workloads_from=sorted(set(names)))
    request_push(cluster.name)


def apply_configuration(cluster: Cluster, configuration: Mapping[str, Any], *, applied_set: str = "") -> Action:
    row = Cluster.objects.select_for_update(no_key=True).get(pk=cluster.pk)
    action = Action.UNCHANGED if row.configuration == configuration else Action.CONFIGURED
    if not row.configuration:
        action = Action.CREATED
    joined = applied_set or row.configuration_applied_set
    if action is not Action.UNCHANGED or joined != row.configuration_applied_set:
        _store(cluster, configuration=dict(configuration), configuration_applied_set=joined)
    return action


def delete_configuration(cluster: Cluster) -> None:
    """Back to Kueue's defaults."""
    _store(cluster, configuration={}, configuration_applied_set="")


def apply_device_plugin(
    cluster: Cluster, key: str, manifest: Mapping[str, Any], settings: Mapping[str, Any], *, applied_set: str = ""
) -> Action:
    """Replace one ConfigMap (`namespace/name`) of the device plugin; the settings of all of them together count."""
    row = Cluster.objects.select_for_update(no_key=True).get(pk=cluster.pk)
    objects = dict(row.device_plugin_configuration.get("objects") or {})
    before = objects.get(key)
    joined = applied_set or (before or {}).get("applied_set", "")
    objects[key] = {"manifest": dict(manifest), "settings": dict(settings), "applied_set": joined}
    if objects[key] == before:
        return Action.UNCHANGED
    _store_objects(cluster, objects)
    if before is None:
        return Action.CREATED
    return Action.UNCHANGED if before["manifest"] == objects[key]["manifest"] else Action.CONFIGURED


def delete_device_plugin(cluster: Cluster, key: str) -> bool:
    """Remove one ConfigMap of the device plugin; whether it was there."""
    row = Cluster.objects.select_for_update(no_key=True).get(pk=cluster.pk)
    objects = dict(row.device_plugin_configuration.get("objects") or {})
    if objects.pop(key, None) is None:
        return False
    _store_objects(cluster, objects)
    return True


def device_plugin_objects(cluster: Cluster) -> dict[str, dict[str, Any]]:
    """The device plugin's ConfigMaps: `namespace/name` -> {manifest, settings, applied_set}."""
    row = Cluster.objects.get(pk=cluster.pk)
    return dict(row.device_plugin_configuration.get("objects") or {})


def device_plugin_settings(cluster: Cluster) -> dict[str, Any]:
    """What the ConfigMaps of the device plugin set, together."""
    row = Cluster.objects.get(pk=cluster.pk)
    return dict(row.device_plugin_configuration.get("settings") or {})


def _store_objects(cluster: Cluster, objects: Mapping[str, Mapping[str, Any]]) -> None:
    settings: dict[str, Any] = {}
    for key in sorted(objects):
        settings |= objects[key]["settings"]
    _store(cluster, device_plugin_configuration={"objects": objects, "settings": settings} if objects else {})


def _store(cluster: Cluster, **columns: Any) -> None:
    Cluster.objects.filter(pk=cluster.pk).update(**columns)
    wake_scheduler(cluster.name)
