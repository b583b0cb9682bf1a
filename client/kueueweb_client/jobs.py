"""Manifests of jobs that are made from words of a command."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def job_manifest(
    namespace: str,
    name: str,
    queue: str,
    image: str,
    needs: Mapping[str, str],
    *,
    replicas: int = 1,
    priority: str = "",
    command: Sequence[str] = (),
) -> dict[str, Any]:
    """Return a suspended batch/v1 Job of equal pods in a LocalQueue; `needs` are the requests and limits of
    each pod."""
    labels = {"kueue.x-k8s.io/queue-name": queue}
    if priority:
        labels["kueue.x-k8s.io/priority-class"] = priority
    resources = {"requests": dict(needs), "limits": dict(needs)}
    container: dict[str, Any] = {"name": "main", "image": image, "resources": resources}
    if command:
        container["command"] = list(command)
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"namespace": namespace, "name": name, "labels": labels},
        "spec": {
            "suspend": True,
            "parallelism": replicas,
            "completions": replicas,
            "template": {"spec": {"restartPolicy": "Never", "containers": [container]}},
        },
    }
