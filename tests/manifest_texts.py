"""Small manifests, and what an apply did in words, for tests of apply and get."""

from collections.abc import Callable

from clusters.manifests import ApplyResult

Apply = Callable[..., ApplyResult]
"""Applies a text, with the options of `apply_manifests`."""


def actions(result: ApplyResult) -> list[str]:
    """`kind key action` of each object."""
    return [
        f"{applied.kind} {'/'.join(part for part in (applied.namespace, applied.name) if part)} {applied.action}"
        for applied in result.objects
    ]


def joined(*texts: str) -> str:
    """One multi-document text."""
    return "---\n".join(texts)


def namespace(name: str = "team") -> str:
    """A Namespace."""
    return f"apiVersion: v1\nkind: Namespace\nmetadata: {{name: {name}}}\n"


def kueue(kind: str, name: str, spec: str = "{}", version: str = "v1beta2") -> str:
    """A cluster-scoped object of Kueue."""
    return f"apiVersion: kueue.x-k8s.io/{version}\nkind: {kind}\nmetadata: {{name: {name}}}\nspec: {spec}\n"


def cluster_queue(name: str = "main", flavor: str = "cpus", cpu: int = 10, more: str = "") -> str:
    """A ClusterQueue with cpu of one flavor, open to all namespaces."""
    cell = f"{{name: {flavor}, resources: [{{name: cpu, nominalQuota: {cpu}}}]}}"
    groups = f"resourceGroups: [{{coveredResources: [cpu], flavors: [{cell}]}}]"
    return kueue("ClusterQueue", name, f"{{namespaceSelector: {{}}, {groups}, {more}}}")


def local_queue(name: str = "queue", queue: str = "main", in_namespace: str = "team") -> str:
    """A LocalQueue."""
    return (
        "apiVersion: kueue.x-k8s.io/v1beta2\nkind: LocalQueue\n"
        f"metadata: {{name: {name}, namespace: {in_namespace}}}\nspec: {{clusterQueue: {queue}}}\n"
    )


def workload_priority_class(name: str, value: int) -> str:
    """A WorkloadPriorityClass."""
    return (
        f"apiVersion: kueue.x-k8s.io/v1beta2\nkind: WorkloadPriorityClass\nmetadata: {{name: {name}}}\nvalue: {value}\n"
    )


def priority_class(name: str, value: int, *, default: bool = False) -> str:
    """A PriorityClass."""
    return (
        f"apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {{name: {name}}}\nvalue: {value}\n"
        f"globalDefault: {str(default).lower()}\n"
    )


POD = "restartPolicy: Never, containers: [{name: main, image: busybox, resources: {requests: {cpu: 1}}}]"


def job(
    name: str = "train", queue: str = "queue", spec: str = "", labels: str = "", pod: str = POD, annotations: str = ""
) -> str:
    """A batch/v1 Job of namespace `team`; an empty queue leaves the label out."""
    queue_label = f"kueue.x-k8s.io/queue-name: {queue}, " if queue else ""
    noted = f", annotations: {{{annotations}}}" if annotations else ""
    metadata = f"{{name: {name}, namespace: team, labels: {{{queue_label}{labels}}}{noted}}}"
    return f"apiVersion: batch/v1\nkind: Job\nmetadata: {metadata}\nspec: {{template: {{spec: {{{pod}}}}}, {spec}}}\n"


def deployment(replicas: int, cpu: int = 1, name: str = "web") -> str:
    """An apps/v1 Deployment of namespace `team`."""
    pod = f"{{containers: [{{name: main, image: busybox, resources: {{requests: {{cpu: {cpu}}}}}}}]}}"
    return (
        f"apiVersion: apps/v1\nkind: Deployment\n"
        f"metadata: {{name: {name}, namespace: team, labels: {{kueue.x-k8s.io/queue-name: queue}}}}\n"
        f"spec: {{replicas: {replicas}, selector: {{matchLabels: {{app: a}}}}, "
        f"template: {{metadata: {{labels: {{app: a}}}}, spec: {pod}}}}}\n"
    )


def workload(name: str = "work", queue: str = "queue", more: str = "", cpu: int = 1, count: int = 1) -> str:
    """A Workload of namespace `team`."""
    pod = f"{{spec: {{restartPolicy: Never, containers: [{{name: main, resources: {{requests: {{cpu: {cpu}}}}}}}]}}}}"
    return (
        f"apiVersion: kueue.x-k8s.io/v1beta2\nkind: Workload\nmetadata: {{name: {name}, namespace: team}}\n"
        f"spec: {{queueName: {queue}, podSets: [{{name: main, count: {count}, template: {pod}}}], {more}}}\n"
    )
