"""Every kind that is taken, in the order in which an apply stores them, and those that are known but not taken."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from accounts.exceptions import HostileManifest, InvalidRequest, ManifestErrors
from accounts.kinds.configuration import read_configuration
from clusters.jobs.reading import reader_of
from clusters.jobs.running import OPERATED_KINDS
from gpus.manifests import read_config_map, read_node
from queues.manifests.documents import read_documents
from queues.manifests.job import read_deployment, read_job, read_pod
from queues.manifests.workload_object import read_workload
from queues.services.kinds import KINDS as CONFIGURATION_KINDS
from scheduling.manifest import Fields
from scheduling.manifest.fields import suggestion

Reader = Callable[[Fields, str], Any]


@dataclass(frozen=True)
class Kind:
    """A kind: the versions it is read from, its reader, and the words that people use for it beside its name."""

    name: str
    api_versions: tuple[str, ...]
    read: Reader
    namespaced: bool
    words: tuple[str, ...] = ()


def _read_config_map(top: Fields, version: str) -> Any:
    """Reads those data values that are YAML mappings: HAMi keeps its settings in there."""
    data = top.content.get("data")
    contents: dict[str, dict[str, Any]] = {}
    for name, text in data.items() if isinstance(data, Mapping) else ():
        if not isinstance(text, str):
            continue
        try:
            documents = read_documents(text)
        except HostileManifest as mistake:
            top.report.error(f"{top.at('data')}[{name}]", text, mistake.errors[0].rule, mistake.errors[0].remedy)
        except ManifestErrors:
            continue  # not YAML, or no mapping: not HAMi's
        else:
            if documents:
                contents[name] = documents[0].content
    return read_config_map(top, contents)


_WORDS: Final = {
    "Namespace": ("ns",),
    "WorkloadPriorityClass": ("wpc",),
    "PriorityClass": ("pc",),
    "RuntimeClass": (),
    "LimitRange": ("limits",),
    "ResourceQuota": ("quota",),
    "Topology": ("topo",),
    "AdmissionCheck": ("ac",),
    "ResourceFlavor": ("rf", "flavor"),
    "Cohort": ("co",),
    "ClusterQueue": ("cq",),
    "LocalQueue": ("lq", "queue"),
}
_CONFIGURATION_VERSIONS: Final = ("config.kueue.x-k8s.io/v1beta2", "config.kueue.x-k8s.io/v1beta1")
_WORKLOAD_VERSIONS: Final = ("kueue.x-k8s.io/v1beta2", "kueue.x-k8s.io/v1beta1")

KINDS: Final[Mapping[str, Kind]] = {
    kind.name: kind
    for kind in (
        Kind("Configuration", _CONFIGURATION_VERSIONS, read_configuration, namespaced=False),
        *(
            Kind(name, kind.api_versions, kind.read, kind.namespaced, _WORDS[name])
            for name, kind in CONFIGURATION_KINDS.items()
        ),
        Kind("ConfigMap", ("v1",), _read_config_map, namespaced=True, words=("cm",)),
        Kind("Node", ("v1",), read_node, namespaced=False, words=("no",)),
        Kind("Job", ("batch/v1",), read_job, namespaced=True),
        Kind("Pod", ("v1",), read_pod, namespaced=True, words=("po",)),
        Kind("Deployment", ("apps/v1",), read_deployment, namespaced=True, words=("deploy",)),
        *(Kind(rules.kind, (rules.api_version,), reader_of(rules), namespaced=True) for rules in OPERATED_KINDS),
        Kind("Workload", _WORKLOAD_VERSIONS, read_workload, namespaced=True, words=("wl", "kwl", "kueueworkload")),
    )
}

JOB_KINDS: Final = ("Job", "Pod", "Deployment", *(rules.kind for rules in OPERATED_KINDS))

FOREIGN_GROUPS: Final = {
    "batch.volcano.sh": "Volcano",
    "scheduling.volcano.sh": "Volcano",
    "bus.volcano.sh": "Volcano",
    "autoscaling": "Kubernetes",
    "jobset.x-k8s.io": "JobSet",
    "kubeflow.org": "Kubeflow",
    "trainer.kubeflow.org": "Kubeflow",
    "ray.io": "KubeRay",
    "leaderworkerset.x-k8s.io": "LeaderWorkerSet",
    "workload.codeflare.dev": "AppWrapper",
    "sparkoperator.k8s.io": "the Spark operator",
    "kueue.x-k8s.io": "Kueue",
    "apps": "Kubernetes",
    "": "Kubernetes",
}
"""API groups that people bring along -> whose they are, to name a kind that is not taken."""


def group_of(api_version: str) -> str:
    """`batch/v1` -> `batch`; the core group is empty."""
    return api_version.rpartition("/")[0]


def version_of(api_version: str) -> str:
    """`batch/v1` -> `v1`."""
    return api_version.rpartition("/")[2]


def kind_named(word: str) -> Kind:
    """The kind that a person means: its name in any case, its plural or its short name. Raises `InvalidRequest`."""
    known = _known_words()
    kind = known.get(word.lower().partition(".")[0])
    if kind is None:
        raise InvalidRequest(f'"{word}" is no kind that is taken. {suggestion(word, KINDS)}')
    return kind


def _known_words() -> dict[str, Kind]:
    known: dict[str, Kind] = {}
    for kind in KINDS.values():
        for word in (kind.name.lower(), *kind.words):
            known[word] = kind
            known[_plural(word)] = kind
    return known


def _plural(word: str) -> str:
    if word.endswith("y"):
        return f"{word[:-1]}ies"
    return f"{word}es" if word.endswith("s") else f"{word}s"
