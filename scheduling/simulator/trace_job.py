"""A job of a trace, and its Workload in a configuration."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from scheduling.model.pod import PodTemplate
from scheduling.model.workload import PodSet, Workload
from scheduling.simulator.simulator import EPOCH

CLASSES: Final = ("no device", "part of a device", "1 device", "2 to 7 devices", "8 devices and more")
"""Classes of jobs by the devices of all their pods, as in the reports on use."""
_CLASS_BOUNDS: Final = ((0.0, CLASSES[0]), (0.999, CLASSES[1]), (1.999, CLASSES[2]), (7.999, CLASSES[3]))


@dataclass(frozen=True, slots=True)
class TraceJob:
    """A job: equal pods with these requests (quantities by resource), times in seconds since the first submission.

    * devices: whole devices of all pods; a slice counts as the larger of its shares of memory and cores.
    """

    name: str
    namespace: str
    queue: str
    submitted_at: float
    run_seconds: float
    pods: int
    devices: float
    requests: Mapping[str, str]
    priority: int = 0

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def size(self) -> str:
        """The class of the job."""
        return next((name for bound, name in _CLASS_BOUNDS if self.devices <= bound), CLASSES[-1])

    def workload(self, local_queue: str, resources: Collection[str]) -> Workload:
        """Return its Workload in a LocalQueue (namespace/name). Requests of resources without a quota are left out."""
        namespace, _, queue = local_queue.partition("/")
        requests = {name: text for name, text in self.requests.items() if name in resources}
        template = PodTemplate.from_manifest(
            {"spec": {"containers": [{"name": "main", "resources": {"requests": requests, "limits": requests}}]}}
        )
        return Workload(
            namespace=namespace,
            name=self.name,
            uid=self.key,
            queue_name=queue,
            pod_sets=(PodSet("main", self.pods, template),),
            priority=self.priority,
            created_at=EPOCH + self.submitted_at,
        )
