"""Plans of "what if": a YAML text -> the changes that it names. Trying one stores them and rolls them back."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.contrib.auth.models import User

from accounts.models import Cluster
from accounts.services.access import Access, access_of
from accounts.services.apply_result import Action, Applied
from accounts.services.cluster_settings import CONFIGURATION_NAME
from clusters.manifests import ApplyResult, apply_documents, delete_manifest, kind_named
from foundation.exceptions import InvalidRequest, ManifestErrors, NotFound, NotPermitted
from gpus.models import Device, Node
from queues.manifests.documents import Document, read_documents
from queues.models import Workload, WorkloadPriorityClass
from queues.services.owners import require_owner
from queues.services.pod_policy import class_problems
from scheduling.devices.requests.policy import DEVICE_POLICIES, NODE_POLICIES
from scheduling.manifest import FieldReader, LocatedError, MistakeReason
from scheduling.manifest.errors import ValidationReport
from scheduling.model.vocabulary import WorkloadStatus
from scheduling.studio.node_changes import AddNodes, CordonNode, DrainNode, LoseNode, NodeChange, ReturnNode
from studio.services.plan_patches import patched_documents

MAX_PLAN_BYTES: Final = 2**18
_MAX_ADDED_NODES: Final = 1000
_MAX_LISTED: Final = 1000
_NODE_FIELDS: Final = ("add", "cordon", "drain", "lose", "return")
_OF_A_DEVICE: Final[Mapping[str, Callable[[str, str], NodeChange]]] = {
    "cordon": CordonNode,
    "drain": DrainNode,
    "lose": LoseNode,
}
_COMMAND_LINE: Final = Access("manage.py", is_superuser=True)


@dataclass(frozen=True, slots=True)
class Plan:
    """Changes that all happen at once: manifests applied, patched and deleted, nodes and devices, workloads that end or
    are requeued (keys), workloads with the WorkloadPriorityClass that they get, and the default policies of placement,
    empty if they stay.
    """

    apply: tuple[Document, ...] = ()
    patch: tuple[Document, ...] = ()
    delete: tuple[Document, ...] = ()
    nodes: tuple[NodeChange, ...] = ()
    end: tuple[str, ...] = ()
    requeue: tuple[str, ...] = ()
    priorities: tuple[tuple[str, str], ...] = ()
    node_policy: str = ""
    device_policy: str = ""


def read_plan(text: str | bytes) -> Plan:
    """Read a plan: one document with the sections apply, patch, delete, nodes, end, requeue, priorities and policies,
    or manifests to apply.

    Raises `HostileManifest`, and `ManifestErrors` with every mistake located.
    """
    if len(text) > MAX_PLAN_BYTES:
        raise InvalidRequest(f"plan: Too long: must have at most {MAX_PLAN_BYTES} bytes, has {len(text)}.")
    documents = read_documents(text)
    if not documents:
        raise InvalidRequest("plan: Required value: the changes to try, as manifests or in sections.")
    if any("kind" in document.content for document in documents):
        return Plan(apply=tuple(documents))
    if len(documents) > 1:
        raise InvalidRequest("plan: must be one document with sections, or several manifests.")
    report = ValidationReport(documents[0].index)
    plan = _read_sections(FieldReader(report, "", documents[0].content))
    if report.errors:
        raise ManifestErrors(report.errors)
    if plan == Plan():
        raise InvalidRequest("plan: Required value: at least one change.")
    return plan


def _read_sections(top: FieldReader) -> Plan:
    applied, patches, deleted = (_documents(top, name) for name in ("apply", "patch", "delete"))
    nodes = [_node_change(item) for item in top.items("nodes", max_items=_MAX_LISTED)]
    ended, requeued = (
        tuple(top.texts(name, max_items=_MAX_LISTED, syntax=_key_mistake)) for name in ("end", "requeue")
    )
    priorities = tuple(_priority(item) for item in top.items("priorities", max_items=_MAX_LISTED))
    policies = top.fields("policies")
    node_policy = policies.optional_choice("node", NODE_POLICIES) if policies else None
    device_policy = policies.optional_choice("device", DEVICE_POLICIES) if policies else None
    if policies:
        policies.close()
    top.close()
    found = tuple(change for change in nodes if change is not None)
    return Plan(
        applied,
        patches,
        deleted,
        found,
        ended,
        requeued,
        priorities,
        node_policy=node_policy or "",
        device_policy=device_policy or "",
    )


def _priority(item: FieldReader) -> tuple[str, str]:
    """Return a workload, and the class that it gets."""
    key = item.text("workload", required=True)
    if key and (mistake := _key_mistake(key)):
        item.error("workload", mistake, key)
    found = key, item.text("class", required=True)
    item.close()
    return found


def _documents(top: FieldReader, name: str) -> tuple[Document, ...]:
    """Return the objects of a section; their mistakes are located in it."""
    items = top.items(name, max_items=_MAX_LISTED)
    return tuple(Document(index, dict(item.content), name) for index, item in enumerate(items))


def _node_change(item: FieldReader) -> NodeChange | None:
    """Return one change of a node; None if it is mistaken."""
    named = [field for field in _NODE_FIELDS if item.has(field)]
    if len(named) != 1:
        item.error("", f"must have exactly one of {', '.join(_NODE_FIELDS)}", "", MistakeReason.REQUIRED)
        return None
    change = _read_change(item, named[0])
    item.close()
    return change


def _read_change(item: FieldReader, field: str) -> NodeChange:
    if field == "add":
        count = item.integer("add", 1, minimum=1, maximum=_MAX_ADDED_NODES)
        return AddNodes(item.text("like", required=True), count)
    name = item.text(field, required=True)
    return ReturnNode(name) if field == "return" else _OF_A_DEVICE[field](name, item.text("device"))


def _key_mistake(key: str) -> str | None:
    namespace, _, name = key.partition("/")
    return None if namespace and name and "/" not in name else "must be namespace/name"


def plan_access(user: User | None, cluster: Cluster) -> Access:
    """Return the rights of a plan's author; all of them on the command line, where there is no user."""
    return _COMMAND_LINE if user is None else access_of(user, cluster)


def store_plan(
    cluster: Cluster, plan: Plan, access: Access, user: User | None, *, is_trial: bool = True
) -> ApplyResult:
    """Store the manifests of a plan, and check the rest.

    A trial, whose caller rolls the transaction back, may also patch the namespaces that the cluster has. The author
    needs the rights to make the changes. Raises `ManifestErrors`, `NotPermitted`, `NotFound` and `MirroredFromCluster`.
    """
    _check_nodes(cluster, plan, access)
    _check_acted_on(cluster, plan, access)
    patched = patched_documents(cluster, plan.patch, access)
    _refuse_twin_namespaces(plan, patched)
    applied: list[Applied] = []
    # Policies of namespaces first: they decide about the jobs of the same plan.
    for documents, as_cluster in (
        ([each for each in plan.apply if _is_namespace(each)], False),
        ([each for each in patched if _is_namespace(each)], is_trial),
        ([each for each in (*plan.apply, *patched) if not _is_namespace(each)], False),
    ):
        if documents:
            applied += apply_documents(cluster, documents, user=user, as_cluster=as_cluster).objects
    deleted = tuple(_delete(cluster, document, access) for document in plan.delete)
    return ApplyResult((*applied, *deleted), dry_run=True)


def _is_namespace(document: Document) -> bool:
    return document.content.get("kind") == "Namespace"


def _refuse_twin_namespaces(plan: Plan, patched: Collection[Document]) -> None:
    """Raise `ManifestErrors` for a Namespace in both sections, which are stored apart: the patch would undo the
    manifest."""
    applied = {_name_of(each) for each in plan.apply if _is_namespace(each)}
    twins = [each for each in patched if _is_namespace(each) and _name_of(each) in applied]
    if twins:
        rule, remedy = "Duplicate value: the section apply has this Namespace, too", "Write it in one section."
        raise ManifestErrors(
            [
                LocatedError(
                    each.index, "metadata.name", _name_of(each), rule, remedy, MistakeReason.DUPLICATE, each.source
                )
                for each in twins
            ]
        )


def _check_nodes(cluster: Cluster, plan: Plan, access: Access) -> None:
    if plan.nodes or plan.node_policy or plan.device_policy:
        access.require("submit", "Node")
    gone = {_name_of(document) for document in plan.delete if document.content.get("kind") == "Node"}
    for place, change in enumerate(plan.nodes):
        name = change.like if isinstance(change, AddNodes) else change.name
        if name in gone:
            raise InvalidRequest(
                f"plan: nodes[{place}]: Invalid value: the plan loses or deletes Node {name} already. Leave one of "
                "the two changes out."
            )
        if isinstance(change, LoseNode) and not change.device:
            gone.add(name)
        if not Node.objects.filter(cluster=cluster, name=name).exists():
            raise NotFound(f"There is no Node {name} in cluster {cluster.name}.")
        device = change.device if isinstance(change, CordonNode | DrainNode | LoseNode) else ""
        if device and not Device.objects.filter(node__cluster=cluster, node__name=name, uuid=device).exists():
            raise NotFound(f"There is no Device {device} on Node {name} in cluster {cluster.name}.")


def _name_of(document: Document) -> str:
    metadata = document.content.get("metadata")
    return str(metadata.get("name") or "") if isinstance(metadata, Mapping) else ""


def _check_acted_on(cluster: Cluster, plan: Plan, access: Access) -> None:
    """Require what the actions themselves require: end, requeue and another priority."""
    keys = [split_key(key) for key in (*plan.end, *plan.requeue, *(key for key, _ in plan.priorities))]
    queues = _queues_of_unfinished(cluster, keys)
    for namespace, name in keys:
        missing = NotFound(f"There is no unfinished Workload {namespace}/{name} in cluster {cluster.name}.")
        if not access.sees(namespace):
            raise missing
        access.require("submit", "Workload", namespace)
        if (namespace, name) not in queues:
            raise missing
    require_owner(cluster, access, keys)
    _check_classes(cluster, access, [(*split_key(key), name) for key, name in plan.priorities], queues)


def split_key(key: str) -> tuple[str, str]:
    """Return the namespace and the name of a workload's key."""
    namespace, _, name = key.partition("/")
    return namespace, name


def _queues_of_unfinished(cluster: Cluster, keys: Collection[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """Return the names of the LocalQueues of those workloads that exist and have not finished."""
    if not keys:
        return {}
    wanted = set(keys)
    namespaces, names = {namespace for namespace, _ in wanted}, {name for _, name in wanted}
    rows = Workload.objects.filter(cluster=cluster, namespace__in=namespaces, name__in=names)
    found = rows.exclude(status=WorkloadStatus.FINISHED).values_list("namespace", "name", "queue_name")
    return {(namespace, name): queue for namespace, name, queue in found if (namespace, name) in wanted}


def _check_classes(
    cluster: Cluster, access: Access, wanted: Collection[tuple[str, str, str]], queues: Mapping[tuple[str, str], str]
) -> None:
    """Require that the classes of (namespace, workload, class) exist, and that the author may use them there."""
    if not wanted:
        return
    classes = {name for _, _, name in wanted}
    rows = WorkloadPriorityClass.objects.filter(cluster=cluster, name__in=classes)
    known = frozenset(rows.values_list("name", flat=True))
    asked = [
        (namespace, queues[namespace, workload], name)
        for namespace, workload, name in wanted
        if name in known and not access.may("protect", "Workload", namespace)
    ]
    problems = class_problems(cluster, asked)
    for namespace, workload, name in wanted:
        if name not in known:
            raise NotFound(f"There is no WorkloadPriorityClass {name} in cluster {cluster.name}.")
        if problem := problems.get((namespace, queues[namespace, workload], name)):
            raise NotPermitted(f"{name} {problem}.")


def _delete(cluster: Cluster, document: Document, access: Access) -> Applied:
    """Delete the object, or mark it for deletion; a warning names its users."""
    kind = kind_named(str(document.content.get("kind") or ""))
    metadata = document.content.get("metadata")
    named: Mapping[str, Any] = metadata if isinstance(metadata, Mapping) else {}
    namespace = str(named.get("namespace") or "") if kind.namespaced else ""
    # A Configuration has no name in its manifest.
    name = str(named.get("name") or (CONFIGURATION_NAME if kind.name == "Configuration" else ""))
    if kind.namespaced and not access.sees(namespace) and not access.may_in_tree(kind.name):
        raise NotFound(f"There is no {kind.name} {namespace}/{name} in cluster {cluster.name}.")
    waiting = delete_manifest(cluster, kind, namespace, name, access=access)
    return Applied(kind.name, namespace, name, Action.PRUNED, (waiting,) if waiting else ())
