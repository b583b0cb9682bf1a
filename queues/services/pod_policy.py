"""A policy per namespace: what tenants' pods may request of a cluster, and the priorities that workloads may have.

The Pod Security level is Kubernetes' own label on the Namespace; other permissions are kueueweb's annotations there,
which only cluster admins can write.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Final

from django.conf import settings

from accounts.models import Cluster, Namespace
from accounts.services.apply_result import Submitted
from queues.manifests import kueue_keys as keys
from queues.manifests.job import JobManifest
from queues.manifests.pod_security import LEVEL_LABEL, Level, violations
from queues.manifests.workload import WorkloadSpec
from queues.models import LocalQueue, PriorityClass, WorkloadPriorityClass
from scheduling.manifest import LocatedError, MistakeReason

SERVICE_ACCOUNTS: Final = "kueueweb.io/allowed-service-accounts"
TOLERATIONS: Final = "kueueweb.io/allowed-tolerations"
POD_PRIORITY_CLASSES: Final = "kueueweb.io/allowed-pod-priority-classes"
PRIORITY_CLASSES: Final = "kueueweb.io/allowed-priority-classes"
NODE_NAMES: Final = "kueueweb.io/allow-node-names"
MAX_PRIORITY: Final = 1_000_000_000
"""Kubernetes' maximum for user-defined priorities; higher ones belong to system classes."""
_FOR_ADMINS: Final = "requires the role admin in the namespace"
_NAME_A_CLASS: Final = "Name a priority class instead."
_SYSTEM_CLASSES: Final = "system-"
_SYSTEM_TAINTS: Final = ("node-role.kubernetes.io/", "node.kubernetes.io/", "node.cloudprovider.kubernetes.io/")
_FILLED_IN: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


@dataclass(frozen=True, slots=True)
class Finding:
    """A violation of a policy: the path in the pod template, the value, the rule and the remedy."""

    path: str
    value: Any
    rule: str
    remedy: str


@dataclass(frozen=True, slots=True)
class PodPolicy:
    """The policy of one namespace. None in a list of names: everything except the system's own is allowed.

    * in_the_cluster: for jobs that users create with the cluster's own API. A policy that an admin wrote applies there,
      but the defaults do not: they replace the cluster's own checks of its users (Pod Security, accounts, nodes, system
      taints).
    """

    namespace: str
    level: Level
    service_accounts: tuple[str, ...] | None = ("default",)
    tolerations: tuple[str, ...] | None = None
    pod_priority_classes: tuple[str, ...] | None = None
    priority_classes: tuple[str, ...] | None = None
    node_names: bool = False
    in_the_cluster: bool = False

    @property
    def closed(self) -> bool:
        """Whether the namespace accepts no submissions. Namespaces of Kubernetes and of kueueweb have more rights than
        a tenant's."""
        return any(fnmatchcase(self.namespace, pattern) for pattern in settings.CLOSED_NAMESPACES)

    def findings(self, spec: Mapping[str, Any]) -> Iterator[Finding]:
        """Yield the violations of a pod spec in this namespace."""
        where = f"in namespace {self.namespace}"
        if not self.in_the_cluster:
            yield from self._defaults(spec, where)
        account = spec.get("serviceAccountName") or spec.get("serviceAccount") or ""
        if account and self.service_accounts is not None and account not in self.service_accounts:
            rule = f"is not an allowed service account {where}"
            yield Finding("serviceAccountName", account, rule, f"Allowed: {', '.join(self.service_accounts)}.")
        yield from self._priority(spec, where)
        yield from self._tolerations(spec, where)

    def _defaults(self, spec: Mapping[str, Any], where: str) -> Iterator[Finding]:
        for broken in violations(self.level, spec):
            rule = f"{broken.rule} at the Pod Security level {self.level} {where}"
            yield Finding(broken.path, broken.value, rule, "Remove it, or ask a cluster admin for another namespace.")
        if spec.get("nodeName") and not self.node_names:
            remedy = "Use nodeSelector: the scheduler chooses the node."
            yield Finding("nodeName", spec["nodeName"], f"may not be set {where}", remedy)
        if spec.get("priority") is not None:
            yield Finding("priority", spec["priority"], "may not be set: a PriorityClass sets it", "Remove it.")

    def _priority(self, spec: Mapping[str, Any], where: str) -> Iterator[Finding]:
        name = spec.get("priorityClassName") or ""
        allowed = self.pod_priority_classes
        if name and (name.startswith(_SYSTEM_CLASSES) if allowed is None else name not in allowed):
            remedy = f"Allowed: {', '.join(allowed)}." if allowed else "Name another one."
            yield Finding("priorityClassName", name, f"is not an allowed PriorityClass {where}", remedy)

    def _tolerations(self, spec: Mapping[str, Any], where: str) -> Iterator[Finding]:
        tolerations = spec.get("tolerations")
        for number, each in enumerate(tolerations if isinstance(tolerations, list) else ()):
            key = each.get("key") or ""
            if self.in_the_cluster and (self.tolerations is None or _is_filled_in(each)):
                refused = False
            elif self.tolerations is None:
                refused = not key or key.startswith(_SYSTEM_TAINTS)
            else:
                refused = key not in self.tolerations
            if refused:
                remedy = (
                    f"Allowed keys: {', '.join(self.tolerations)}." if self.tolerations else "Name the taint's key."
                )
                rule = f"is not an allowed toleration {where}"
                yield Finding(f"tolerations[{number}]", key or "every taint", rule, remedy)


def _is_filled_in(toleration: Mapping[str, Any]) -> bool:
    """Return whether the API server adds it to every pod: for a while pods stay on a node that does not answer."""
    return toleration.get("key") in _FILLED_IN and toleration.get("effect") == "NoExecute"


def policies_of(cluster: Cluster, namespaces: Iterable[str], *, in_the_cluster: bool = False) -> dict[str, PodPolicy]:
    """Return the policies of these namespaces; the default policy for missing ones."""
    wanted = set(namespaces)
    rows = {row.name: row for row in Namespace.objects.filter(cluster=cluster, name__in=wanted)}
    return {name: _policy(name, rows.get(name), in_the_cluster=in_the_cluster) for name in wanted}


def _policy(name: str, row: Namespace | None, *, in_the_cluster: bool) -> PodPolicy:
    labels, annotations = (row.labels, row.annotations) if row is not None else ({}, {})
    level = labels.get(LEVEL_LABEL, "")
    return PodPolicy(
        namespace=name,
        level=Level(level if level in set(Level) else settings.POD_SECURITY_LEVEL),
        service_accounts=_names(annotations.get(SERVICE_ACCOUNTS)) or (None if in_the_cluster else ("default",)),
        tolerations=_names(annotations.get(TOLERATIONS)),
        pod_priority_classes=_names(annotations.get(POD_PRIORITY_CLASSES)),
        priority_classes=_names(annotations.get(PRIORITY_CLASSES)),
        node_names=annotations.get(NODE_NAMES) == "true",
        in_the_cluster=in_the_cluster,
    )


def _names(text: str | None) -> tuple[str, ...] | None:
    return None if text is None else tuple(name.strip() for name in text.split(",") if name.strip())


def check_jobs(
    cluster: Cluster, submissions: Iterable[Submitted[JobManifest]], *, in_the_cluster: bool = False
) -> None:
    """Report violations of each submission's namespace policy."""
    submissions = list(submissions)
    namespaces = {submitted.spec.meta.namespace for submitted in submissions}
    policies = policies_of(cluster, namespaces, in_the_cluster=in_the_cluster)
    for submitted in submissions:
        job, policy = submitted.spec, policies[submitted.spec.meta.namespace]
        if policy.closed and not in_the_cluster:
            _refuse(submitted, "metadata.namespace", policy.namespace, "is a system namespace and accepts no jobs", "")
        for pod_set in job.pod_sets:
            for found in policy.findings(pod_set.template.get("spec") or {}):
                path = job.path_of(pod_set.name, f"spec.{found.path}")
                _refuse(submitted, path, found.value, found.rule, found.remedy)


def _refuse(submitted: Submitted[Any], path: str, value: Any, rule: str, remedy: str) -> None:
    submitted.report.error(submitted.at(path), value, rule, remedy, MistakeReason.FORBIDDEN)


def check_priorities(cluster: Cluster, submissions: Iterable[Submitted[JobManifest]]) -> None:
    """Report priorities that a submitter may not use."""
    rules = _PriorityRules(cluster)
    for submitted in submissions:
        job = submitted.spec
        if keys.PRIORITY_BOOST in job.meta.annotations:
            value = job.meta.annotations[keys.PRIORITY_BOOST]
            _refuse(submitted, f"metadata.annotations[{keys.PRIORITY_BOOST}]", value, _FOR_ADMINS, _NAME_A_CLASS)
        name = job.workload_priority_class or job.hinted_priority_class
        problem = rules.class_problem(job.meta.namespace, job.queue_name, name) if name else ""
        if problem:
            _refuse(submitted, f"metadata.labels[{keys.PRIORITY_CLASS}]", name, problem, "Name another one.")


def check_workloads(cluster: Cluster, specs: Iterable[WorkloadSpec], *, admins: frozenset[str]) -> list[LocatedError]:
    """Return the mistakes of workloads that were submitted without a manifest's report. Their pods are checked, and so
    are their priorities unless the user is an admin of the namespace."""
    specs = list(specs)
    policies = policies_of(cluster, {spec.namespace for spec in specs})
    closed = {namespace for namespace, policy in policies.items() if policy.closed}
    rules = _PriorityRules(cluster)
    errors: list[LocatedError] = []
    for spec in specs:
        policy = policies[spec.namespace]
        if spec.namespace in closed:
            errors.append(
                _located(spec, "namespace", policy.namespace, "is a system namespace and accepts no workloads")
            )
        for number, pod_set in enumerate(spec.pod_sets if spec.job is not None else ()):
            errors += [
                _located(spec, f"pod_sets[{number}].template.spec.{found.path}", found.value, found.rule, found.remedy)
                for found in policy.findings(pod_set.template.get("spec") or {})
            ]
        if spec.priority is not None and spec.priority > MAX_PRIORITY:
            errors.append(_located(spec, "priority", spec.priority, f"must be at most {MAX_PRIORITY}"))
        elif spec.namespace not in admins:
            errors += _priority_errors(rules, spec)
    return errors


def _priority_errors(rules: "_PriorityRules", spec: WorkloadSpec) -> Iterator[LocatedError]:
    boost = spec.annotations.get(keys.PRIORITY_BOOST)
    if boost is not None:
        yield _located(spec, f"annotations[{keys.PRIORITY_BOOST}]", boost, _FOR_ADMINS, _NAME_A_CLASS)
    name = spec.priority_class_name
    if spec.priority is not None and spec.priority != rules.value(spec.priority_class_kind, name):
        yield _located(spec, "priority", spec.priority, f"is a number, which {_FOR_ADMINS}", _NAME_A_CLASS)
    problem = rules.class_problem(spec.namespace, spec.queue_name, name) if name else ""
    if problem:
        yield _located(spec, "priority_class", name, problem, "Name another one.")


def class_problem(cluster: Cluster, namespace: str, queue: str, name: str) -> str:
    """Return why a submitter may not use a priority class; empty if it is allowed."""
    return _PriorityRules(cluster).class_problem(namespace, queue, name)


def class_problems(cluster: Cluster, wanted: Iterable[tuple[str, str, str]]) -> dict[tuple[str, str, str], str]:
    """Return why submitters may not use priority classes, by (namespace, LocalQueue, class); allowed classes are left
    out. The rules of each LocalQueue are read once."""
    rules = _PriorityRules(cluster)
    found = {key: rules.class_problem(*key) for key in dict.fromkeys(wanted)}
    return {key: problem for key, problem in found.items() if problem}


class _PriorityRules:
    """The classes that each namespace may use, and their values; each is read once."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._values: dict[tuple[str, str], int | None] = {}
        self._allowed: dict[tuple[str, str], tuple[tuple[str, ...] | None, str]] = {}

    def value(self, kind: str, name: str) -> int | None:
        """Return the value of a class; 0 without one."""
        if not name:
            return 0
        if (kind, name) not in self._values:
            model = PriorityClass if kind == "PriorityClass" else WorkloadPriorityClass
            rows = model._default_manager.filter(cluster=self._cluster, name=name)
            self._values[kind, name] = rows.values_list("value", flat=True).first()
        return self._values[kind, name]

    def class_problem(self, namespace: str, queue: str, name: str) -> str:
        """Return why the class may not be used. The LocalQueue's list takes precedence over the namespace's."""
        if (namespace, queue) not in self._allowed:
            self._allowed[namespace, queue] = self._listed(namespace, queue)
        listed, where = self._allowed[namespace, queue]
        if not name.startswith(_SYSTEM_CLASSES) and (listed is None or name in listed):
            return ""
        return f"is not a priority class that {where} allows" + (f": allowed are {', '.join(listed)}" if listed else "")

    def _listed(self, namespace: str, queue: str) -> tuple[tuple[str, ...] | None, str]:
        row = LocalQueue.objects.filter(cluster=self._cluster, namespace=namespace, name=queue).first()
        listed = _names((row.annotations if row is not None else {}).get(PRIORITY_CLASSES))
        if listed is not None:
            return listed, f"LocalQueue {namespace}/{queue}"
        return policies_of(self._cluster, [namespace])[namespace].priority_classes, f"namespace {namespace}"


def _located(spec: WorkloadSpec, path: str, value: Any, rule: str, remedy: str = "") -> LocatedError:
    return LocatedError(spec.document, path, value, rule, remedy, MistakeReason.FORBIDDEN)
