"""Objects of the cluster as the watcher saw them: devices that drivers publish, and Kueue's objects that differ."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api.names_filter import ONE_OR_MORE, names_in
from accounts.api.scope import ClusterView
from accounts.api.whole_list import WholeList
from queues.models import ClusterObject, ServedObject
from scheduling.devices.claims.cel_values import CelError
from scheduling.devices.claims.claim_reading import read_class, read_pools, read_shares, read_taken
from scheduling.devices.claims.matching import selects, variables
from scheduling.devices.claims.objects import DeviceId

_ATTRIBUTE_KINDS = ("string", "int", "bool", "version", "strings", "ints", "bools", "versions")


class PublishedDeviceSerializer(serializers.Serializer[Any]):
    """A device of a ResourceSlice."""

    cluster = serializers.CharField()
    driver = serializers.CharField()
    pool = serializers.CharField()
    name = serializers.CharField()
    node = serializers.CharField(allow_blank=True, help_text="Empty for a device that is not bound to one node.")
    device_classes = serializers.ListField(
        child=serializers.CharField(), help_text="The DeviceClasses whose selectors match it."
    )
    attributes = serializers.DictField(child=serializers.CharField())
    capacity = serializers.DictField(child=serializers.CharField())
    claim = serializers.CharField(
        allow_blank=True,
        help_text="namespace/name of the ResourceClaim that holds it; `another namespace` for users who may not "
        "see it; empty: free.",
    )
    usable = serializers.BooleanField(help_text="Whether its pool is complete and no taint keeps new pods away.")


class ServedObjectProblemSerializer(serializers.Serializer[Any]):
    """An object of Kueue's that differs between the cluster and kueueweb, and the reason."""

    cluster = serializers.CharField()
    kind = serializers.CharField()
    namespace = serializers.CharField(allow_blank=True)
    name = serializers.CharField()
    problem = serializers.CharField(
        help_text="The refused change, in the words of the cluster or of kueueweb, whichever refused it."
    )
    failures = serializers.IntegerField(help_text="The number of attempts.")
    retry_at = serializers.DateTimeField(
        allow_null=True, help_text="When it is retried; null: when the object changes."
    )


class PublishedDevicesView(ClusterView):
    """`published-devices/`."""

    serializer_class = PublishedDeviceSerializer
    spans_clusters = True
    pagination_class = WholeList
    queryset = ClusterObject.objects.none()

    @extend_schema(
        parameters=[
            OpenApiParameter("node", str, description=ONE_OR_MORE),
            OpenApiParameter("driver", str, description=ONE_OR_MORE),
        ],
        responses=PublishedDeviceSerializer(many=True),
    )
    def get(self, request: Request) -> Response:
        """List the devices that drivers publish for claims (DRA), by cluster, node and name."""
        visible = self.reach.namespaces()
        found: dict[int, dict[str, list[dict[str, Any]]]] = {pk: defaultdict(list) for pk in visible}
        holders: dict[int, dict[DeviceId, list[str]]] = {pk: defaultdict(list) for pk in visible}
        rows = ClusterObject.objects.filter(
            self.reach.rows(), kind__in=("DeviceClass", "ResourceSlice", "ResourceClaim")
        )
        columns = ("cluster_id", "kind", "namespace", "name", "manifest")
        for pk, kind, namespace, name, manifest in rows.values_list(*columns):
            found[pk][kind].append(manifest)
            if kind == "ResourceClaim":
                names = visible[pk]
                seen = names is None or namespace in names
                holder = f"{namespace}/{name}" if seen else "another namespace"
                for device_id in (*read_taken(manifest), *read_shares([manifest])):
                    holders[pk][device_id].append(holder)
        devices = [
            {"cluster": self.reach.name(pk), **device}
            for pk, objects in found.items()
            for device in _devices(objects["ResourceSlice"], objects["DeviceClass"], holders[pk])
        ]
        wanted = {key: names_in(value) for key in ("node", "driver") if (value := request.query_params.get(key))}
        chosen = [each for each in devices if all(each[key] in values for key, values in wanted.items())]
        return self.get_paginated_response(chosen)


class ServedObjectProblemsView(ClusterView):
    """`served-objects/problems/`."""

    serializer_class = ServedObjectProblemSerializer
    spans_clusters = True
    queryset = ServedObject.objects.none()
    keyset = ("kind", "namespace", "name")

    @extend_schema(responses=ServedObjectProblemSerializer(many=True))
    def get(self, request: Request) -> Response:
        """List Kueue's objects that could not be synchronized between the cluster and kueueweb."""
        visible = self.reach.namespaces()
        seen = {pk: None if names is None else ["", *names] for pk, names in visible.items()}
        rows = ServedObject.objects.filter(self.reach.rows("namespace", seen)).exclude(problem="")
        columns = ("kind", "namespace", "name", "problem", "failures", "retry_at")
        page = self.paginate_queryset(rows.values("id", "cluster_id", *columns)) or []
        return self.get_paginated_response(
            [{"cluster": self.reach.name(row["cluster_id"]), **{key: row[key] for key in columns}} for row in page]
        )


def _devices(
    slices: list[dict[str, Any]], classes: list[dict[str, Any]], holders: Mapping[DeviceId, list[str]]
) -> list[dict[str, Any]]:
    known = [read_class(each) for each in classes]
    rows = []
    for pool in read_pools(slices):
        for device in pool.devices:
            names = variables(device)
            rows.append(
                {
                    "driver": device.id.driver,
                    "pool": device.id.pool,
                    "name": device.id.name,
                    "node": device.node,
                    "device_classes": sorted(each.name for each in known if _chooses(each.selectors, names)),
                    "attributes": {key: _attribute(value) for key, value in device.attributes.items()},
                    "capacity": {key: str((value or {}).get("value", "")) for key, value in device.capacity.items()},
                    "claim": ", ".join(dict.fromkeys(holders.get(device.id, ()))),
                    "usable": pool.complete and not device.tainted,
                }
            )
    return sorted(rows, key=lambda each: (each["node"], each["driver"], each["pool"], each["name"]))


def _chooses(selectors: tuple[str, ...], names: Mapping[str, Any]) -> bool:
    try:
        return selects(selectors, names)
    except CelError:
        return False


def _attribute(value: Mapping[str, Any]) -> str:
    found = next((value[kind] for kind in _ATTRIBUTE_KINDS if value.get(kind) is not None), "")
    if isinstance(found, bool):
        return "true" if found else "false"
    return ", ".join(map(str, found)) if isinstance(found, list) else str(found)
