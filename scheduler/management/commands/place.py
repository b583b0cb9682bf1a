"""`manage.py place INPUT --output OUTPUT`: replay recorded pods through the placement, one after another.

INPUT is a JSON list (gzip if its name ends in .gz) of `{"name", "scenario"}`. A scenario holds `nodePolicy` and
`gpuPolicy`, `nodes` (v1 Node manifests with HAMi's register annotations, or capacity for vendors that have none),
perhaps `resourceQuotas` (v1 ResourceQuota manifests), and `events` in order: `{"place": v1 Pod}` or `{"remove":
"namespace/name"}`. OUTPUT gets a list of `{"name", "result"}`: per placed pod its `node` and `containers` (HAMi's
pseudo container for all of them: a list of `uuid`, `memoryMiB`, `cores`), the `annotations` that it gets, without times
and the node's name, and `mutatedAnnotations`, which HAMi's webhook adds; or `refused`: node -> HAMi's reason with
counts. A pod that HAMi's webhook turns away, or whose annotations it can't read, is `refused` by no node and has the
`problem`.
"""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from foundation.recorded_scenarios import read_scenarios
from gpus.annotations import NODE, TIMES, count_scores, node_devices, pod_annotations, webhook_annotations
from gpus.services import observed_node
from gpus.vendors import VENDORS
from scheduling.devices.policies.typical_pods import PodShape, pod_shape, typical_pods
from scheduling.devices.requests.requests import pod_device_request
from scheduling.devices.search.fleet import Fleet
from scheduling.devices.search.pod_usage import peak_usage
from scheduling.devices.search.search import NodeTies
from scheduling.model.node import Node
from scheduling.model.placement import Placement, PlacementRefusal, PodPlacement, PodSetToPlace
from scheduling.model.vendor import DeviceVendor
from scheduling.simulator.scenario import read_resource_quota


class Command(BaseCommand):
    help = "Place the pods of recorded scenarios, one after another, as HAMi's scheduler would."
    requires_system_checks: list[str] = []  # decides on files only

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("input", type=Path, help="scenarios, JSON, gzip if the name ends in .gz")
        parser.add_argument("--output", type=Path, required=True, help="where to write the placements")

    def handle(self, *args: object, **options: Any) -> None:
        cases = read_scenarios(options["input"])
        try:
            results = [{"name": case["name"], "result": placements(case["scenario"])} for case in cases]
        except (KeyError, TypeError) as error:
            raise CommandError(f"{options['input']} is not a list of placement scenarios: {error!r}") from error
        options["output"].write_text(json.dumps(results, indent=1) + "\n")


def placements(scenario: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return one entry per placed pod of a scenario, in order."""
    fleet = Fleet(
        VENDORS,
        node_policy=scenario["nodePolicy"],
        device_policy=scenario["gpuPolicy"],
        as_hami=True,
        node_ties=NodeTies.LAST_DONE,
    )
    vendors = tuple(fleet.settings.vendors.values())
    for manifest in scenario["nodes"]:
        fleet.set_node(_node(manifest, vendors))
    for manifest in scenario.get("resourceQuotas") or ():
        fleet.quotas.set_quota(read_resource_quota(manifest))
    fleet.mix.pods = typical_pods(_shape(event["place"]) for event in scenario["events"] if "place" in event)
    entries = []
    for event in scenario["events"]:
        if "remove" in event:
            if event["remove"] in fleet.reservations:
                fleet.release(event["remove"])
        else:
            entries.append(_place(fleet, event["place"]))
    return entries


def _shape(pod: Mapping[str, Any]) -> PodShape:
    """Return a pod as `fgd` and `bid-price` see it; the scenario's own pods are the typical ones."""
    return pod_shape(PodSetToPlace("main", 1, devices=pod_device_request(pod, VENDORS)))


def _place(fleet: Fleet, pod: Mapping[str, Any]) -> dict[str, Any]:
    metadata = pod["metadata"]
    key = f"{metadata['namespace']}/{metadata['name']}"
    if key in fleet.reservations:
        fleet.release(key)
    devices = pod_device_request(pod, fleet.settings.vendors.values())
    problems = [problem for problem in devices.problems if problem.refused]
    if problems:
        first = problems[0]
        return {"pod": key, "refused": {}, "problem": f"{first.resource} {first.value}: {first.message}"}
    outcome = fleet.place([PodSetToPlace("main", 1, devices=devices, namespace=metadata["namespace"])])
    if isinstance(outcome, PlacementRefusal):
        return {"pod": key, "refused": dict(outcome.reasons)}
    fleet.reserve(key, outcome)
    placed = outcome.pods[0]
    added = webhook_annotations(placed, tuple(fleet.settings.vendors.values()), pod)
    return {
        "pod": key,
        "node": placed.node,
        "containers": [_devices(outcome)],
        "annotations": _annotations(fleet, placed, pod),
        **({"mutatedAnnotations": added} if added else {}),
    }


def _annotations(fleet: Fleet, placed: PodPlacement, pod: Mapping[str, Any]) -> dict[str, str]:
    """Return the annotations for the device plugins, without the node's name and times."""
    found = pod_annotations(
        placed,
        tuple(fleet.settings.vendors.values()),
        0,
        manifest=pod,
        devices={device.uuid: device for device in fleet.nodes[placed.node].devices},
    )
    return {key: value for key, value in found.items() if key != NODE and key not in TIMES}


def _devices(placement: Placement) -> list[dict[str, Any]]:
    """Return the pod's usage per device, with all containers combined as HAMi does."""
    pod = placement.pods[0]
    return [
        {"uuid": part.uuid, "memoryMiB": part.memory_mib, "cores": part.cores_percent}
        for part in peak_usage(pod.containers, pod.init_container_count, as_hami=True).values()
    ]


def _node(manifest: Mapping[str, Any], vendors: Sequence[DeviceVendor]) -> Node:
    """Return a recorded node. Only its devices matter here; HAMi leaves the rest to other filters."""
    node = observed_node(manifest)
    found = node_devices(node.name, node.annotations, node.capacity, {}, vendors, 0, node.labels)
    return Node(
        node.name,
        labels=node.labels,
        devices=found.devices,
        unhealthy_vendors=found.unhealthy_vendors,
        count_scores=count_scores(node.annotations, VENDORS),
    )
