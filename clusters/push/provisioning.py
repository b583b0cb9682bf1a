"""Admission checks that ask an autoscaler for nodes: Kueue's controller `kueue.x-k8s.io/provisioning-request`.

While a workload holds quota, each such check with a ProvisioningRequestConfig has one ProvisioningRequest in the
cluster, with a PodTemplate for each of its entries. The request's conditions decide the check: Ready once the nodes
exist, Retry with a back-off, or Rejected. Requests of workloads that hold no quota any more are deleted.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Final

from accounts.models import Cluster
from clusters.api_errors import ClusterError
from clusters.api_objects import POD_TEMPLATES, PROVISIONING_REQUESTS, JsonObject, Kind
from clusters.client import ClusterClient
from clusters.jobs.framework.pod_set_info import PodSetInfo, merge_into_template
from clusters.jobs.objects import MANAGED_LABEL, WORKLOAD_UID_LABEL
from clusters.push.desired_state import FlavorNodes, flavors_of
from clusters.push.namespaces import make_namespace
from foundation.exceptions import KueuewebError
from queues.kinds.provisioning import RETRY_DEFAULTS, MergePolicy
from queues.models import AdmissionCheck, PodSet, ProvisioningRequestConfig, Workload
from queues.services.admission_checks import CheckAnswer, set_check_state
from queues.services.workload_events import log_event
from scheduling.model.vocabulary import AdmissionCheckStatus, WorkloadStatus
from scheduling.state.second_pass import PROVISIONING

_log = logging.getLogger(__name__)

CONFIG_KIND: Final = "ProvisioningRequestConfig"
CHECK_ANNOTATION: Final = "kueueweb.io/admission-check"
PARAMETER_PREFIX: Final = "provreq.kueue.x-k8s.io/"
"""Annotations of a workload that add parameters to its requests."""
CONSUMES: Final = "autoscaling.x-k8s.io/consume-provisioning-request"
CLASS: Final = "autoscaling.x-k8s.io/provisioning-class-name"
NOT_NEEDED: Final = "the provisioning request is not needed"
_LONGEST_NAME: Final = 253


@dataclass(frozen=True, slots=True)
class _Case:
    """A check of a workload that holds quota."""

    workload: Workload
    check: str
    config: ProvisioningRequestConfig
    state: Mapping[str, Any]

    @property
    def attempt(self) -> int:
        return int(self.state.get("retryCount") or 0) + 1

    @property
    def name(self) -> str:
        """The name of its request, shortened and made unique if it is too long."""
        name = f"{self.workload.name}-{self.check}-{self.attempt}"
        if len(name) <= _LONGEST_NAME:
            return name
        digest = hashlib.sha256(name.encode()).hexdigest()[:8]
        return f"{name[: _LONGEST_NAME - 9]}-{digest}"

    @property
    def pending(self) -> bool:
        return bool(self.state["state"] == AdmissionCheckStatus.PENDING)

    def pod_sets(self) -> list[PodSet]:
        """Return the pod sets for which nodes are requested."""
        managed = set(self.config.managed_resources)
        return [
            pod_set
            for pod_set in self.workload.pod_sets.all()
            if _count(pod_set) and (not managed or managed & pod_set.requests.keys())
        ]


def _count(pod_set: PodSet) -> int:
    return pod_set.count if pod_set.admitted_count is None else pod_set.admitted_count


class ProvisioningRequests:
    """One pass over the checks and requests of a cluster."""

    def __init__(self, cluster: Cluster, client: ClusterClient, clock: Callable[[], float]) -> None:
        self._cluster = cluster
        self._client = client
        self._clock = clock

    def follow(self) -> None:
        """Create missing requests, read the conditions of the others, and delete requests that have lost their
        workload."""
        configs = self._configs()
        if not configs:
            return
        cases = list(self._cases(configs))
        try:
            there = self._requests()
        except ClusterError as error:
            if not error.not_found:
                raise
            message = (
                f"cluster {self._cluster.name} does not serve {PROVISIONING_REQUESTS.api_version} "
                f"{PROVISIONING_REQUESTS.kind}: install its CRD and an autoscaler that answers it, or remove the check"
            )
            for case in cases:
                if case.pending:
                    self._answer(case, CheckAnswer(AdmissionCheckStatus.PENDING, message))
            return
        for case in cases:
            self._follow_one(case, there.pop((case.workload.namespace, case.name), None))
        for request in there.values():
            self._remove(request)

    @cached_property
    def _flavors(self) -> Mapping[str, FlavorNodes]:
        return flavors_of(self._cluster)

    def _configs(self) -> dict[str, ProvisioningRequestConfig]:
        """Return the configuration of each check that names one. A check without one is answered by another
        controller."""
        checks = AdmissionCheck.objects.filter(cluster=self._cluster, controller_name=PROVISIONING, active=True)
        named = {row.name: row.parameters["name"] for row in checks if row.parameters.get("kind") == CONFIG_KIND}
        if not named:
            return {}
        rows = ProvisioningRequestConfig.objects.filter(cluster=self._cluster, name__in=set(named.values()))
        known = {row.name: row for row in rows}
        return {check: known[config] for check, config in named.items() if config in known}

    def _cases(self, configs: Mapping[str, ProvisioningRequestConfig]) -> Iterator[_Case]:
        holding = Workload.objects.filter(cluster=self._cluster, quota_reserved_at__isnull=False, evicted_at=None)
        holding = holding.exclude(status=WorkloadStatus.FINISHED).exclude(admission_check_states=[])
        for workload in holding.prefetch_related("pod_sets").order_by("pk"):
            for state in workload.admission_check_states:
                if state["name"] in configs:
                    yield _Case(workload, state["name"], configs[state["name"]], state)

    def _requests(self) -> dict[tuple[str, str], JsonObject]:
        items = self._client.list(PROVISIONING_REQUESTS, label_selector=f"{MANAGED_LABEL}=true").items
        return {(item["metadata"]["namespace"], item["metadata"]["name"]): item for item in items}

    def _follow_one(self, case: _Case, request: JsonObject | None) -> None:
        if request is not None:
            answer = answer_of(request, case)
            if answer is not None:
                self._answer(case, answer)
        elif case.pending:
            pod_sets = case.pod_sets()
            if pod_sets:
                self._create(case, pod_sets)
            else:
                self._answer(case, CheckAnswer(AdmissionCheckStatus.READY, NOT_NEEDED))

    def _answer(self, case: _Case, answer: CheckAnswer) -> None:
        workload = case.workload
        if answer.state is AdmissionCheckStatus.PENDING and answer.message == case.state.get("message"):
            return
        at = datetime.fromtimestamp(self._clock(), UTC)
        try:
            set_check_state(
                self._cluster, workload.namespace, workload.name, case.check, answer, actor=case.check, now=at
            )
        except KueuewebError as error:
            # The workload was cancelled or evicted meanwhile.
            _log.info("check %s of %s: the answer is no longer needed: %s", case.check, workload, error)

    def _create(self, case: _Case, pod_sets: Sequence[PodSet]) -> None:
        workload = case.workload
        now = datetime.fromtimestamp(self._clock(), UTC)
        try:
            entries = []
            for members in _merged(pod_sets, case.config.pod_set_merge_policy):
                template = self._template(case, members[0])
                self._apply(POD_TEMPLATES, template)
                name = template["metadata"]["name"]
                entries.append({"podTemplateRef": {"name": name}, "count": sum(map(_count, members))})
            self._apply(PROVISIONING_REQUESTS, _request(case, entries))
        except ClusterError as error:
            if error.status == 0:
                raise
            message = f"Error creating ProvisioningRequest {case.name!r}: {error}"
            if message != case.state.get("message"):
                log_event(workload, "FailedCreate", message, actor=case.check, now=now, warning=True)
            self._answer(case, CheckAnswer(AdmissionCheckStatus.PENDING, message))
            return
        message = f"Created ProvisioningRequest: {case.name!r}"
        log_event(workload, "ProvisioningRequestCreated", message, actor=case.check, now=now)
        self._answer(case, CheckAnswer(AdmissionCheckStatus.PENDING, message))

    def _apply(self, kind: Kind, manifest: JsonObject) -> None:
        """Apply a manifest, and create its namespace if the workload is the first there."""
        try:
            self._client.apply(kind, manifest)
        except ClusterError as error:
            namespace = manifest["metadata"]["namespace"]
            if not error.not_found or not make_namespace(self._cluster, self._client, namespace):
                raise
            self._client.apply(kind, manifest)

    def _template(self, case: _Case, pod_set: PodSet) -> JsonObject:
        """Return the pods with their final node selection: the labels and tolerations of their flavors."""
        content = {
            "metadata": dict(pod_set.template.get("metadata") or {}),
            "spec": dict(pod_set.template.get("spec") or {}),
        }
        info = PodSetInfo(pod_set.name, _count(pod_set))
        for name in dict.fromkeys(pod_set.flavors.values()):
            flavor = self._flavors.get(name)
            if flavor is not None:
                tolerations = [dict(each) for each in flavor.tolerations]
                info.add(annotations={}, labels={}, node_selector=flavor.node_labels, tolerations=tolerations)
        merge_into_template(content, info)
        return {
            "apiVersion": POD_TEMPLATES.api_version,
            "kind": POD_TEMPLATES.kind,
            "metadata": _metadata(case, f"ppt-{case.name}-{pod_set.name}"[:_LONGEST_NAME]),
            "template": content,
        }

    def _remove(self, request: JsonObject) -> None:
        metadata = request["metadata"]
        self._client.delete(PROVISIONING_REQUESTS, metadata["namespace"], metadata["name"], uid=metadata["uid"])
        for entry in request["spec"].get("podSets") or ():
            self._client.delete(POD_TEMPLATES, metadata["namespace"], entry["podTemplateRef"]["name"])


def _metadata(case: _Case, name: str) -> JsonObject:
    return {
        "name": name,
        "namespace": case.workload.namespace,
        "labels": {MANAGED_LABEL: "true", WORKLOAD_UID_LABEL: str(case.workload.uid)},
        "annotations": {CHECK_ANNOTATION: case.check},
    }


def _request(case: _Case, entries: Sequence[JsonObject]) -> JsonObject:
    own = {
        key.removeprefix(PARAMETER_PREFIX): text
        for key, text in case.workload.annotations.items()
        if key.startswith(PARAMETER_PREFIX)
    }
    parameters = {**case.config.parameters, **own}
    spec: JsonObject = {
        "provisioningClassName": case.config.provisioning_class_name,
        "podSets": list(entries),
        **({"parameters": parameters} if parameters else {}),
    }
    return {
        "apiVersion": PROVISIONING_REQUESTS.api_version,
        "kind": PROVISIONING_REQUESTS.kind,
        "metadata": _metadata(case, case.name),
        "spec": spec,
    }


def _merged(pod_sets: Sequence[PodSet], policy: str) -> list[list[PodSet]]:
    """Return the pod sets that are merged into one entry, in order."""
    if not policy:
        return [[pod_set] for pod_set in pod_sets]
    found: dict[str, list[PodSet]] = {}
    for pod_set in pod_sets:
        found.setdefault(_likeness(pod_set, policy), []).append(pod_set)
    return list(found.values())


def _likeness(pod_set: PodSet, policy: str) -> str:
    template = pod_set.template
    if policy == MergePolicy.IDENTICAL_POD_TEMPLATES:
        return repr(sorted(_flat(template)))
    spec = template.get("spec") or {}
    asked = [each.get("resources") for each in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ()))]
    alike = {name: spec.get(name) for name in ("nodeSelector", "tolerations", "affinity", "resourceClaims")}
    return repr(sorted(_flat({"asked": asked, **alike})))


def _flat(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield the leaf values of a manifest with their paths."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _flat(item, f"{path}.{key}")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _flat(item, f"{path}[{index}]")
    else:
        yield path, repr(value)


def answer_of(request: Mapping[str, Any], case: _Case) -> CheckAnswer | None:
    """Return the check's state by a request's conditions; None if it does not change."""
    status = request.get("status") or {}
    conditions = {entry["type"]: entry for entry in status.get("conditions") or () if entry.get("status") == "True"}
    admitted = case.workload.admitted_at is not None
    if "CapacityRevoked" in conditions:
        message = f"Capacity revoked: {_text(conditions['CapacityRevoked'])}"
        return CheckAnswer(AdmissionCheckStatus.REJECTED, message)
    if not case.pending:
        return None
    for failed in ("Failed", "BookingExpired"):
        if failed in conditions and not admitted:
            return _retry(case, _text(conditions[failed]))
    if "Provisioned" in conditions:
        details = status.get("provisioningClassDetails") or {}
        return CheckAnswer(AdmissionCheckStatus.READY, _text(conditions["Provisioned"]), None, _updates(case, details))
    if "Accepted" in conditions:
        return CheckAnswer(AdmissionCheckStatus.PENDING, _text(conditions["Accepted"]))
    return None


def _text(condition: Mapping[str, Any]) -> str:
    return str(condition.get("message") or condition.get("reason") or condition["type"])


def _retry(case: _Case, message: str) -> CheckAnswer:
    strategy = {**RETRY_DEFAULTS, **case.config.retry_strategy}
    if case.attempt > strategy["backoffLimitCount"]:
        return CheckAnswer(AdmissionCheckStatus.REJECTED, message)
    doubled = strategy["backoffBaseSeconds"] * 2 ** min(case.attempt - 1, 30)
    return CheckAnswer(
        AdmissionCheckStatus.RETRY,
        f"Retrying after failure: {message}",
        min(doubled, strategy["backoffMaxSeconds"]),
    )


def _updates(case: _Case, details: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the pods' annotations with the name of their request, by which an autoscaler knows them, and their nodes'
    labels."""
    selector = {
        entry["key"]: details[entry["valueFromProvisioningClassDetail"]]
        for entry in _selectors(case.config.pod_set_updates)
        if entry["valueFromProvisioningClassDetail"] in details
    }
    annotations = {CONSUMES: case.name, CLASS: case.config.provisioning_class_name}
    return [
        {"name": pod_set.name, "annotations": annotations, **({"nodeSelector": selector} if selector else {})}
        for pod_set in case.pod_sets()
    ]


def _selectors(updates: Mapping[str, Any]) -> Iterable[Mapping[str, str]]:
    return updates.get("nodeSelector") or ()
