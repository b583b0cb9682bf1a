"""Applies a plan that was tried: all its changes in one transaction, unless the state on which its answer rests has
changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, ClassVar, Final

from django.contrib.auth.models import User
from django.db import connection, transaction
from django.utils import timezone

from accounts.models import Cluster
from accounts.services.access import Access
from accounts.services.actor import because, request_id
from accounts.services.apply_result import Action
from accounts.services.cluster_settings import require_not_mirrored
from clusters.manifests.apply import lock_applies
from foundation.exceptions import Conflict, NotFound
from gpus.models import Device, Node
from gpus.services.cordon import close_device, close_node
from queues.models import WorkloadPriorityClass
from queues.services.workloads import cancel, change_priority, requeue
from scheduling.studio.node_changes import AddNodes, CordonNode, DrainNode, LoseNode, NodeChange, ReturnNode
from studio.models import Question, QuestionKind, QuestionState
from studio.services.plan_basis import basis_of, moved_nodes, moved_workloads, outdated
from studio.services.plans import Plan, plan_access, read_plan, split_key, store_plan


class NotAnswered(Conflict):
    """The plan has no answer, so its effects are not known."""

    reason: ClassVar[str] = "NotAnswered"


class AlreadyApplied(Conflict):
    """The plan was applied before."""

    reason: ClassVar[str] = "AlreadyApplied"


class PlanOutdated(Conflict):
    """The objects on which the answer rests have changed since."""

    reason: ClassVar[str] = "PlanOutdated"


class NotApplicable(Conflict):
    """The plan has changes that only the cluster itself can make."""

    reason: ClassVar[str] = "NotApplicable"


class PlanAction(StrEnum):
    """The result of an applied plan for one object."""

    CREATED = "created"
    CONFIGURED = "configured"
    UNCHANGED = "unchanged"
    DELETED = "deleted"
    CANCELLED = "cancelled"
    REQUEUED = "requeued"
    PRIORITIZED = "prioritized"
    CORDONED = "cordoned"
    DRAINED = "drained"
    RETURNED = "returned"


PLAN_ACTIONS: Final = [action.value for action in PlanAction]


@dataclass(frozen=True, slots=True)
class Change:
    """An object that an applied plan changed."""

    action: PlanAction
    kind: str
    namespace: str
    name: str
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AppliedPlan:
    """The changed objects, and by kind of change the number of workloads and nodes that changed since the answer.

    Only workloads of the user's namespaces are counted.
    """

    objects: tuple[Change, ...]
    moved: Mapping[str, int]


def apply_question(opened: Question, access: Access, user: User) -> AppliedPlan:
    """Apply the plan of a question with the rights of this user. If two users apply it at once, the second is refused.
    Raises NotAnswered, AlreadyApplied, and the errors of `apply_plan`; nothing is stored then."""
    title = f"Plan {opened.pk}" + (f" ({opened.name})" if opened.name else "")
    with because(title), transaction.atomic():
        question = Question.objects.select_for_update().filter(pk=opened.pk).first()
        if question is None:
            raise NotFound(f"There is no Question {opened.pk} in cluster {opened.cluster.name}.")
        basis, tried_at = _require_applicable(question)
        plan = read_plan(question.inputs["plan"])
        done = apply_plan(opened.cluster, plan, basis, tried_at, access=access, user=user)
        question.applied_at = timezone.now()
        question.applied = {
            "by": user.get_username(),
            "request_id": request_id(),
            "objects": [asdict(change) for change in done.objects],
        }
        question.save(update_fields=["applied_at", "applied"])
        # It writes the audit of quotas, which a caller's transaction would write later, without the reason.
        connection.check_constraints()
    return done


def _require_applicable(question: Question) -> tuple[Mapping[str, Any], datetime]:
    """Return the versions on which the answer rests, and its time."""
    if question.kind != QuestionKind.WHAT_IF:
        raise Conflict(f"Question {question.pk} is not a plan: only plans (what-if) are applied.")
    if question.applied_at is not None:
        by = (question.applied or {}).get("by", "")
        raise AlreadyApplied(
            f"Plan {question.pk} was applied at {question.applied_at:%Y-%m-%d %H:%M:%S} UTC by {by}. To apply it "
            "again, try it again."
        )
    if question.state != QuestionState.ANSWERED or question.basis is None or question.tried_at is None:
        raise NotAnswered(f"Plan {question.pk} has no complete answer. Try it again, and apply that answer.")
    return question.basis, question.tried_at


def apply_plan(
    cluster: Cluster,
    plan: Plan,
    basis: Mapping[str, Any],
    tried_at: datetime,
    *,
    access: Access | None = None,
    user: User | None = None,
) -> AppliedPlan:
    """Apply the changes of a plan in one transaction. Without a user, they are attributed to the command line. Raises
    PlanOutdated, NotApplicable, and the errors of `store_plan`."""
    access = access or plan_access(user, cluster)
    require_not_mirrored(cluster)
    # Before the lock: no decision waits for the counts.
    since = moved_workloads(cluster, access.visible_namespaces(), tried_at)
    with transaction.atomic():
        # Neither an edit of the configuration nor a batch of decisions is committed from here on.
        lock_applies(cluster, against_decisions=True)
        present = basis_of(cluster, plan)
        if changed := outdated(basis, present):
            raise PlanOutdated(
                f"Nothing was stored: since the plan was tried, {_listed(changed)} changed. Its effects may be "
                "different now. Try it again, and apply that answer."
            )
        stored = store_plan(cluster, plan, access, user, is_trial=False)
        _refuse_what_only_a_cluster_does(cluster, plan)
        documents = (
            Change(_action(each.action), each.kind, each.namespace, each.name, each.warnings) for each in stored.objects
        )
        objects = (*documents, *_act_on_workloads(cluster, plan, access.username), *_act_on_nodes(cluster, plan.nodes))
    return AppliedPlan(objects, {**since, "nodes": moved_nodes(basis, present)})


def _action(action: Action) -> PlanAction:
    return PlanAction.DELETED if action is Action.PRUNED else PlanAction(action.value)


_MAX_NAMED: Final = 10


def _listed(changed: list[str]) -> str:
    more = f" and {len(changed) - _MAX_NAMED} more" if len(changed) > _MAX_NAMED else ""
    return ", ".join(changed[:_MAX_NAMED]) + more


def _refuse_what_only_a_cluster_does(cluster: Cluster, plan: Plan) -> None:
    problems = [problem for place, change in enumerate(plan.nodes) for problem in _problems(cluster, place, change)]
    if plan.node_policy or plan.device_policy:
        problems.append("policies: write them in the ConfigMap of the device plugin, in the section apply")
    if problems:
        raise NotApplicable(
            f"Nothing was stored: kueueweb cannot make {len(problems)} of the plan's changes. Leave them out and try "
            f"the plan again: {'; '.join(problems[:_MAX_NAMED])}."
        )


def _problems(cluster: Cluster, place: int, change: NodeChange) -> Iterator[str]:
    if isinstance(change, AddNodes):
        yield f"nodes[{place}]: only the cluster can add nodes like {change.like}"
    elif isinstance(change, LoseNode):
        lost = f"Device {change.device} of Node {change.name}" if change.device else f"Node {change.name}"
        yield f"nodes[{place}]: only the cluster can lose {lost}"
    elif isinstance(change, ReturnNode) and not _returns_by_us(cluster, change.name):
        yield f"nodes[{place}]: only the cluster can return Node {change.name}, which is not ready or cordoned there"


def _returns_by_us(cluster: Cluster, name: str) -> bool:
    """Return whether only an operator of kueueweb has put the node, or devices of it, out of service."""
    row = Node.objects.get(cluster=cluster, name=name)
    return row.ready and not row.unschedulable and not row.devices.filter(healthy=False).exists()


def _act_on_workloads(cluster: Cluster, plan: Plan, actor: str) -> Iterator[Change]:
    yield from _acted(PlanAction.CANCELLED, plan.end, lambda keys: cancel(cluster, keys, actor=actor))
    yield from _acted(PlanAction.REQUEUED, plan.requeue, lambda keys: requeue(cluster, keys, actor=actor))
    wanted = dict(plan.priorities)  # the last one of a workload counts, as in the trial
    rows = WorkloadPriorityClass.objects.filter(cluster=cluster, name__in=set(wanted.values()))
    for name, value in rows.values_list("name", "value"):
        keys = [key for key, its_class in wanted.items() if its_class == name]
        yield from _acted(PlanAction.PRIORITIZED, keys, _prioritize(cluster, value, name, actor))


_Keys = list[tuple[str, str]]


def _prioritize(cluster: Cluster, value: int, name: str, actor: str) -> Callable[[_Keys], _Keys]:
    return lambda keys: change_priority(cluster, keys, value, priority_class_name=name, actor=actor)


def _acted(action: PlanAction, keys: Iterable[str], act: Callable[[_Keys], _Keys]) -> Iterator[Change]:
    """Yield the result for each workload. A service may leave one unchanged, as the trial did: a waiting workload that
    is requeued stays as it is."""
    pairs = [split_key(key) for key in keys]
    changed = set(act(pairs))
    for pair in pairs:
        yield Change(action if pair in changed else PlanAction.UNCHANGED, "Workload", *pair)


def _act_on_nodes(cluster: Cluster, changes: Iterable[NodeChange]) -> Iterator[Change]:
    for change in changes:
        if isinstance(change, ReturnNode):
            close_node(cluster.pk, change.name, cordoned=False)
            closed = Device.objects.filter(node__cluster=cluster, node__name=change.name, cordoned=True)
            for uuid in list(closed.values_list("uuid", flat=True)):
                close_device(cluster.pk, uuid, cordoned=False)
            yield Change(PlanAction.RETURNED, "Node", "", change.name)
        elif isinstance(change, CordonNode | DrainNode):
            draining = isinstance(change, DrainNode) or None
            if change.device:
                close_device(cluster.pk, change.device, cordoned=True, draining=draining)
            else:
                close_node(cluster.pk, change.name, cordoned=True, draining=draining)
            action = PlanAction.DRAINED if draining else PlanAction.CORDONED
            kind, name = ("Device", change.device) if change.device else ("Node", change.name)
            yield Change(action, kind, "", name)
