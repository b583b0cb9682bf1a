"""The kubelets of all nodes: bound pods are admitted, get their devices, start, run for their time, and stop."""

from __future__ import annotations

from scheduling.model.times import parse_rfc3339
from simulation.api.objects import (
    JsonObject,
    annotations_of,
    condition_is_true,
    controller_of,
    is_deleting,
    timestamp,
    uid_of,
)
from simulation.api.pods import (
    NodeUsage,
    is_finished,
    node_of,
    phase_of,
    pod_condition,
    with_pod_condition,
)
from simulation.api.resources import BY_PLURAL
from simulation.controllers.device_plugin import AllocationFailed, DevicePlugin
from simulation.environment import FAIL, RUN_SECONDS, Environment

_MANAGER = "kubelet"
_EXIT_FAILED = 1
_EXIT_TERMINATED = 143


class Kubelet:
    """Runs pods on ready nodes."""

    def __init__(self, environment: Environment, usage: NodeUsage, plugin: DevicePlugin) -> None:
        self._environment = environment
        self._usage = usage
        self._plugin = plugin
        # Kubernetes keeps whole seconds, but scaled time needs fractions. After a restart, use the stored times.
        self._exact: dict[tuple[str, str], float] = {}

    def reconcile(self, namespace: str, name: str) -> float | None:
        pod = self._environment.store.get("pods", namespace, name)
        if pod is None or not node_of(pod):
            return None
        node = self._environment.store.get("nodes", "", node_of(pod))
        if node is None or not condition_is_true(node, "Ready"):
            return None
        if is_deleting(pod):
            return self._stop(pod)
        if phase_of(pod) == "Pending":
            return self._start(pod, node)
        return self._run(pod) if phase_of(pod) == "Running" else None

    def forget(self, uid: str) -> None:
        """Drop what is remembered of a deleted pod."""
        for step in ("accepted", "started", "allocated", "stopping"):
            self._exact.pop((uid, step), None)

    def _moment(self, pod: JsonObject, step: str, stored: str | None) -> float:
        key = (uid_of(pod), step)
        if key not in self._exact:
            self._exact[key] = parse_rfc3339(stored) if stored else self._environment.now()
        return self._exact[key]

    def _stop(self, pod: JsonObject) -> float | None:
        options = self._environment.options
        grace = pod["metadata"].get("deletionGracePeriodSeconds", 0)
        due = self._moment(pod, "stopping", None) + self._environment.scaled(min(options.stop_seconds, grace))
        if self._environment.now() < due:
            return due
        if not is_finished(pod):
            pod = self._finish(pod, False, _EXIT_TERMINATED, "", "")
        self._environment.registry.remove(BY_PLURAL["pods"], pod)
        return None

    def _start(self, pod: JsonObject, node: JsonObject) -> float | None:
        environment, options = self._environment, self._environment.options
        status = pod["status"]
        if "startTime" not in status:
            lacking = self._usage.lacking(pod, node)
            if lacking:
                self._finish(
                    pod, False, _EXIT_FAILED, f"OutOf{lacking}", f"Node didn't have enough resource: {lacking}"
                )
                return None
            accepted = self._moment(pod, "accepted", None)
            status = {**status, "startTime": timestamp(accepted)}
            status["conditions"] = with_pod_condition(pod, pod_condition("PodScheduled", True, accepted))
            pod = environment.set_status("pods", pod, status, _MANAGER)
        accepted = self._moment(pod, "accepted", status["startTime"])
        key = (uid_of(pod), "allocated")
        if self._plugin.needs_devices(pod) and key not in self._exact:
            due = accepted + environment.scaled(options.allocate_seconds)
            if environment.now() < due:
                return due
            self._exact[key] = environment.now()
            try:
                self._plugin.allocate(pod)
            except AllocationFailed as error:
                message = f"Allocate failed due to {error}, which is unexpected"
                self._finish(self._live(pod), False, _EXIT_FAILED, "UnexpectedAdmissionError", message)
                return None
            pod = self._live(pod)
        due = accepted + environment.scaled(options.start_seconds)
        if environment.now() < due:
            return due
        return self._started(pod)

    def _live(self, pod: JsonObject) -> JsonObject:
        metadata = pod["metadata"]
        return self._environment.registry.get(BY_PLURAL["pods"], metadata["namespace"], metadata["name"])

    def _started(self, pod: JsonObject) -> float | None:
        now = self._environment.now()
        status = {**pod["status"], "phase": "Running"}
        for kind in ("Initialized", "ContainersReady", "Ready"):
            status["conditions"] = with_pod_condition({"status": status}, pod_condition(kind, True, now))
        status["containerStatuses"] = [
            {
                "name": container["name"],
                "image": container.get("image", ""),
                "imageID": f"simulated://{container.get('image', '')}",
                "ready": True,
                "started": True,
                "restartCount": 0,
                "state": {"running": {"startedAt": timestamp(now)}},
            }
            for container in pod["spec"]["containers"]
        ]
        self._exact[uid_of(pod), "started"] = now
        pod = self._environment.set_status("pods", pod, status, _MANAGER)
        return self._run(pod)

    def _run(self, pod: JsonObject) -> float | None:
        duration = self._run_seconds(pod)
        if duration is None:
            return None
        containers = pod["status"].get("containerStatuses") or [{}]
        stored = (containers[0].get("state") or {}).get("running", {}).get("startedAt")
        fails = self._fails(pod)
        due = self._moment(pod, "started", stored) + self._environment.scaled(duration)
        if self._environment.now() < due:
            return due
        reason, message = ("Error", "the container ended with an error") if fails else ("", "")
        self._finish(pod, not fails, _EXIT_FAILED if fails else 0, reason, message)
        return None

    def _run_seconds(self, pod: JsonObject) -> float | None:
        """Seconds of cluster time; None for pods that run until they are stopped."""
        text = annotations_of(pod).get(RUN_SECONDS)
        if text is not None:
            try:
                return max(0.0, float(text))
            except ValueError:
                return self._environment.options.default_run_seconds
        owner = controller_of(pod)
        if pod["spec"]["restartPolicy"] == "Always" and (owner is None or owner["kind"] != "Job"):
            return None
        return self._environment.options.default_run_seconds

    def _fails(self, pod: JsonObject) -> bool:
        text = annotations_of(pod).get(FAIL, "")
        if text.lower() in ("true", "false"):
            return text.lower() == "true"
        try:
            rate = float(text) if text else self._environment.options.fail_rate
        except ValueError:
            rate = self._environment.options.fail_rate
        return self._environment.draw("fail", uid_of(pod)) < rate

    def _finish(self, pod: JsonObject, succeeded: bool, exit_code: int, reason: str, message: str) -> JsonObject:
        now = self._environment.now()
        status = {**pod["status"], "phase": "Succeeded" if succeeded else "Failed"}
        for kind in ("ContainersReady", "Ready"):
            ended = pod_condition(kind, False, now, "PodCompleted" if succeeded else "PodFailed")
            status["conditions"] = with_pod_condition({"status": status}, ended)
        if reason and reason != "Error":
            status["reason"] = reason
        if message:
            status["message"] = message
        ended_state = {"exitCode": exit_code, "finishedAt": timestamp(now), "reason": reason or "Completed"}
        status["containerStatuses"] = [
            {**entry, "ready": False, "started": False, "state": {"terminated": {**_start_of(entry), **ended_state}}}
            for entry in status.get("containerStatuses") or ()
        ]
        return self._environment.set_status("pods", pod, status, _MANAGER)


def _start_of(entry: JsonObject) -> JsonObject:
    """When a container started, of its status."""
    return dict((entry.get("state") or {}).get("running") or {})
