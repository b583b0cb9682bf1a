"""Settings of a whole cluster: Kueue's Configuration, and the ConfigMaps of HAMi's device plugin."""

import hashlib
import json
import uuid
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

from django.db import transaction
from django.db.models import F
from django.utils.crypto import salted_hmac

from accounts.models import Cluster, ClusterMode, DeviceBinding
from accounts.services.apply_result import Action
from accounts.services.precondition import Precondition
from foundation.exceptions import Conflict, MirroredFromCluster, NotFound
from foundation.outgoing import HIDDEN_CREDENTIALS, without_credentials
from foundation.wake_ups import request_push, wake_scheduler
from scheduling.manifest import LocatedError, ObjectMeta
from scheduling.model.vocabulary import PlacementScope

CONFIGURATION_NAME: Final = "default"
"""The name of a cluster's Configuration, where one is needed: its manifest has none."""
_NOT_THERE: Final = "0"
_MAX_URL: Final = 2048
_MAX_SHOWN: Final = 200
_MAX_LOST: Final = 5
_VERSION_LENGTH: Final = 16
_UNREAD: Final = ObjectMeta("")
"""The metadata of a writer who replaces any version."""


class UnknownCredentials(ValueError):
    """An address with hidden credentials that is not in the stored list. `place` is its index."""

    def __init__(self, place: int, url: str) -> None:
        super().__init__(
            f"Invalid value: {url!r}: *** stands for stored credentials, and none are stored for this "
            "address. Write them out."
        )
        self.place = place


def cluster_named(name: str) -> Cluster:
    """Return the cluster of that name; raises `NotFound`."""
    try:
        return Cluster.objects.get(name=name)
    except Cluster.DoesNotExist:
        raise NotFound(f"There is no cluster named {name!r}.") from None


def require_not_mirrored(cluster: Cluster) -> None:
    """Raise `MirroredFromCluster` if our rows only mirror the cluster."""
    if cluster.is_mirrored:
        raise MirroredFromCluster(
            f"Cluster {cluster.name} is in mode {cluster.mode}: its objects are read-only here. Change them "
            "in the cluster, for example with kubectl, or have a cluster admin set mode schedule."
        )


HANDOVER_CHECKS: Final[list[Callable[[Cluster], Sequence[str]]]] = []
"""Each names what would be lost if another scheduler decided in the cluster from now on."""


def set_mode(cluster: Cluster, mode: ClusterMode) -> None:
    """Set whether kueueweb observes, shadows or schedules the cluster.

    The workers and the watcher follow within seconds. When kueueweb starts to decide in place of another scheduler, it
    serves that scheduler's objects, so that the way back stays open. Raises `Conflict` if the other scheduler would
    stop jobs that kueueweb has started.
    """
    with transaction.atomic():
        # Each batch of decisions compares the generation, so that none stands that was made in the mode before.
        row = Cluster.objects.select_for_update().get(pk=cluster.pk)
        if row.mode == mode:
            return
        if not row.is_mirrored:
            _check_handover(row)
        serves = row.serves_kueue_objects or (row.is_mirrored and mode == ClusterMode.SCHEDULE)
        Cluster.objects.filter(pk=row.pk).update(
            mode=mode, serves_kueue_objects=serves, configuration_generation=F("configuration_generation") + 1
        )
    wake_scheduler(cluster.name)
    request_push(cluster.name)


def _check_handover(cluster: Cluster) -> None:
    lost = [line for check in HANDOVER_CHECKS for line in check(cluster)]
    if not lost:
        return
    shown = "; ".join(lost[:_MAX_LOST]) + (f"; and {len(lost) - _MAX_LOST} more" if len(lost) > _MAX_LOST else "")
    raise Conflict(
        f"The other scheduler would stop {len(lost)} jobs that kueueweb started: {shown}. Run manage.py "
        f"handover --cluster {cluster.name}, which writes their Workloads first."
    )


def set_serves_kueue_objects(cluster: Cluster, *, serves: bool) -> None:
    """Set whether our rows and Kueue's objects in the cluster are kept in sync while we schedule it."""
    rows = Cluster.objects.exclude(serves_kueue_objects=serves).filter(pk=cluster.pk)
    rows.update(serves_kueue_objects=serves)
    request_push(cluster.name)


def set_device_binding(cluster: Cluster, binding: DeviceBinding) -> None:
    """Set the scheduler that binds pods with devices. Gated pods keep the scheduler that they were created for."""
    Cluster.objects.exclude(device_binding=binding).filter(pk=cluster.pk).update(device_binding=binding)
    request_push(cluster.name)


def set_placement(cluster: Cluster, placement: PlacementScope) -> None:
    """Set which pods we place on nodes. Admitted workloads keep their placement."""
    Cluster.objects.exclude(placement=placement).filter(pk=cluster.pk).update(placement=placement)
    wake_scheduler(cluster.name)


def set_accepted_managers(cluster: Cluster, names: Sequence[str]) -> None:
    """Set the managers whose MultiKueue may run workloads in the cluster. They act there with kueueweb's account."""
    Cluster.objects.filter(pk=cluster.pk).update(accepts_workloads_from=sorted(set(names)))
    request_push(cluster.name)


def set_telemetry_urls(cluster: Cluster, urls: Sequence[str]) -> None:
    """Set the addresses that telemetry is read from. An address with `***` in place of a user name and password
    keeps the stored ones. Raises `UnknownCredentials`."""
    row = Cluster.objects.select_for_update(no_key=True).get(pk=cluster.pk)
    kept = defaultdict[str, list[str]](list)
    for shown, stored in zip(shown_telemetry_urls(row), row.telemetry_urls, strict=True):
        kept[shown].append(stored)
    meant = []
    for place, url in enumerate(urls):
        if HIDDEN_CREDENTIALS in url and not kept[url]:
            raise UnknownCredentials(place, url)
        meant.append(kept[url].pop(0) if kept[url] else url)
    Cluster.objects.filter(pk=cluster.pk).update(telemetry_urls=list(dict.fromkeys(meant)))


def telemetry_url_mistake(url: object) -> str:
    """Return the error in a monitor's address; empty if it is valid."""
    if not isinstance(url, str) or len(url) > _MAX_URL or any(not each.isprintable() or each == " " for each in url):
        return f"{str(url)[:_MAX_SHOWN]!r} is not an http(s) URL."
    try:
        parts = urlsplit(url)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
        said, _, _ = parts.netloc.rpartition("@")
        if any(mark in said for mark in '@"\\'):  # the audit hides credentials by their form
            return f'{without_credentials(url)[:_MAX_SHOWN]!r}: write %40, %22 and %5C for @, " and \\ in a password.'
    except ValueError:  # a port that is no number, or half an IPv6 address
        usable = False
    return "" if usable else f"{without_credentials(url)[:_MAX_SHOWN]!r} is not an http(s) URL."


def shown_telemetry_urls(cluster: Cluster) -> list[str]:
    """Return the addresses that telemetry is read from, with `***` in place of user names and passwords."""
    return [without_credentials(url) for url in cluster.telemetry_urls]


def settings_version(cluster: Cluster) -> str:
    """Return a version of the cluster's settings, which changes with each of them."""
    # Keyed, so that passwords cannot be tried against the word.
    urls = salted_hmac("telemetry_urls", json.dumps(cluster.telemetry_urls)).hexdigest()
    settings = (cluster.mode, cluster.serves_kueue_objects, cluster.device_binding, cluster.accepts_workloads_from)
    return content_version((*settings, cluster.placement, urls))


def content_version(content: Any) -> str:
    """Return a version of a setting's content, for optimistic concurrency."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:_VERSION_LENGTH]


def setting_metadata(cluster: Cluster, kind: str, key: str, content: Any) -> dict[str, str]:
    """Return the `uid` and `resourceVersion` of a setting that is read as an object. Each cluster has a uid of its
    own, so that an export of one can be applied to another."""
    uid = uuid.uuid5(uuid.NAMESPACE_URL, f"{cluster.name}/{kind}/{key}")
    return {"uid": str(uid), "resourceVersion": content_version(content)}


def _check_version(cluster: Cluster, kind: str, key: str, read: ObjectMeta, content: Mapping[str, Any] | None) -> None:
    """Raise `Conflict`, in Kubernetes' words, if the writer has read another version than the present one."""
    there = setting_metadata(cluster, kind, key, content)
    now = _NOT_THERE if content is None else there["resourceVersion"]
    if read.resource_version in ("", now) or read.uid not in ("", there["uid"]):
        return
    rule = "the object no longer exists" if content is None else "the object has been modified"
    rule += f"; its resourceVersion is {now} now"
    remedy = "Please apply your changes to the latest version and try again, or omit resourceVersion."
    error = LocatedError(0, "metadata.resourceVersion", read.resource_version, rule, remedy, Conflict.reason)
    raise Conflict(f'Operation cannot be fulfilled on {kind} "{key}": {rule}. Nothing was stored. {remedy}', [error])


def apply_configuration(
    cluster: Cluster, configuration: Mapping[str, Any], *, applied_set: str = "", read: ObjectMeta = _UNREAD
) -> Action:
    """Replace Kueue's Configuration of the cluster. Raises `Conflict` if its resourceVersion has changed since the
    writer `read` it (`0`: there was none)."""
    row = Cluster.objects.select_for_update(no_key=True).get(pk=cluster.pk)
    if row.configuration != configuration:
        _check_version(cluster, "Configuration", CONFIGURATION_NAME, read, row.configuration or None)
    action = Action.UNCHANGED if row.configuration == configuration else Action.CONFIGURED
    if not row.configuration:
        action = Action.CREATED
    joined = applied_set or row.configuration_applied_set
    if action is not Action.UNCHANGED or joined != row.configuration_applied_set:
        _store(cluster, configuration=dict(configuration), configuration_applied_set=joined)
    return action


def delete_configuration(cluster: Cluster, *, precondition: Precondition | None = None) -> bool:
    """Reset to Kueue's defaults. Returns whether there was a Configuration. Raises `PreconditionFailed`."""
    row = Cluster.objects.select_for_update(no_key=True).get(pk=cluster.pk)
    if not row.configuration:
        return False
    if precondition is not None:
        precondition.check("Configuration", CONFIGURATION_NAME, content_version(row.configuration))
    _store(cluster, configuration={}, configuration_applied_set="")
    return True


def apply_device_plugin(
    cluster: Cluster,
    key: str,
    manifest: Mapping[str, Any],
    settings: Mapping[str, Any],
    *,
    applied_set: str = "",
    read: ObjectMeta = _UNREAD,
) -> Action:
    """Replace one ConfigMap (`namespace/name`) of the device plugin. The settings of all its ConfigMaps apply together.
    Raises `Conflict` if the resourceVersion has changed since the writer `read` it."""
    row = Cluster.objects.select_for_update(no_key=True).get(pk=cluster.pk)
    objects = dict(row.device_plugin_configuration.get("objects") or {})
    before = objects.get(key)
    if before is None or before["manifest"] != manifest:
        _check_version(cluster, "ConfigMap", key, read, None if before is None else before["manifest"])
    joined = applied_set or (before or {}).get("applied_set", "")
    objects[key] = {"manifest": dict(manifest), "settings": dict(settings), "applied_set": joined}
    if objects[key] == before:
        return Action.UNCHANGED
    _store_objects(cluster, objects)
    if before is None:
        return Action.CREATED
    return Action.UNCHANGED if before["manifest"] == objects[key]["manifest"] else Action.CONFIGURED


def delete_device_plugin(cluster: Cluster, key: str, *, precondition: Precondition | None = None) -> bool:
    """Remove one ConfigMap of the device plugin. Returns whether it existed. Raises `PreconditionFailed`."""
    row = Cluster.objects.select_for_update(no_key=True).get(pk=cluster.pk)
    objects = dict(row.device_plugin_configuration.get("objects") or {})
    found = objects.pop(key, None)
    if found is None:
        return False
    if precondition is not None:
        precondition.check("ConfigMap", key, content_version(found["manifest"]))
    _store_objects(cluster, objects)
    return True


def device_plugin_objects(cluster: Cluster) -> dict[str, dict[str, Any]]:
    """Return the device plugin's ConfigMaps: `namespace/name` -> {manifest, settings, applied_set}."""
    row = Cluster.objects.get(pk=cluster.pk)
    return dict(row.device_plugin_configuration.get("objects") or {})


def device_plugin_settings(cluster: Cluster) -> dict[str, Any]:
    """Return the merged settings of the device plugin's ConfigMaps."""
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
