"""Actions on workloads: cancel, hold, release, finish, set the priority; on one or on many."""

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api.scope import ClusterView, json_object
from accounts.models import Cluster
from accounts.services.access import require_all
from foundation.exceptions import Conflict, NotPermitted
from queues.api.serializers import (
    ChangedSerializer,
    FinishSerializer,
    KeysSerializer,
    PriorityInputSerializer,
    PriorityOfManySerializer,
    WorkloadDetailSerializer,
)
from queues.api.workload_pieces import in_pieces
from queues.api.workload_rows import workload_detail_json, workload_values
from queues.models import Workload, WorkloadPriorityClass
from queues.services import workloads
from queues.services.owners import require_owner
from queues.services.pod_policy import MAX_PRIORITY, class_problem
from queues.services.visibility import Reader
from scheduling.model.vocabulary import FinishedReason, WorkloadStatus

Key = tuple[str, str]
Action = Callable[..., list[Key]]

_WHY_NOT: Mapping[str, str] = {
    "cancel": "It is already being cancelled.",
    "hold": "It is already on hold.",
    "release": "It is not on hold.",
    "requeue": "It holds no quota, or is already stopping.",
    "priority": "Its priority cannot be changed.",
    "finish": "It cannot be finished.",
}


def _why_not(verb: str, row: Mapping[str, Any]) -> str:
    """Return why an action did not apply to a workload in this state."""
    if row["status"] == WorkloadStatus.FINISHED:
        return "It has ended."
    if row["ending"]:
        return "It is being cancelled, or its job has ended."
    return _WHY_NOT[verb]


def _states(cluster: Cluster, keys: Collection[Key]) -> dict[Key, dict[str, Any]]:
    names = {name for _, name in keys}
    namespaces = {namespace for namespace, _ in keys}
    found = Workload.objects.filter(cluster=cluster, namespace__in=namespaces, name__in=names)
    return {(row["namespace"], row["name"]): dict(row) for row in found.values("namespace", "name", "status", "ending")}


class _ActionView(ClusterView):
    """One action on one workload; answers with the workload's new state."""

    serializer_class = WorkloadDetailSerializer
    verb: ClassVar[str]

    def act(self, namespace: str, name: str, action: Callable[[Cluster, list[Key]], list[Key]]) -> Response:
        """Act on the workload. Raises `NotFound`, `NotPermitted`, or `Conflict` if the workload's state does not allow
        the action."""
        self.require("submit", "Workload", namespace, name)
        require_owner(self.cluster, self.access, [(namespace, name)])
        changed = action(self.cluster, [(namespace, name)])
        found = Workload.objects.filter(cluster=self.cluster, namespace=namespace, name=name)
        row = workload_values(found, detail=True).first()
        if row is None:
            raise self.missing("Workload", namespace, name)
        if not changed:
            state = _states(self.cluster, [(namespace, name)]).get((namespace, name), row | {"ending": None})
            raise Conflict(f"{self.verb} does not apply to workload {namespace}/{name}: {_why_not(self.verb, state)}")
        return Response(workload_detail_json(row, Reader(self.access, self.cluster)))


class CancelView(_ActionView):
    """`workloads/{namespace}/{name}/cancel/`."""

    verb = "cancel"

    @extend_schema(operation_id="workloads_cancel", request=None, responses={200: WorkloadDetailSerializer})
    def post(self, request: Request, namespace: str, name: str) -> Response:
        """End a workload for good. A running workload keeps its devices until its pods have stopped."""
        return self.act(namespace, name, lambda *what: workloads.cancel(*what, actor=self.access.username))


class HoldView(_ActionView):
    """`workloads/{namespace}/{name}/hold/`."""

    verb = "hold"

    @extend_schema(operation_id="workloads_hold", request=None, responses={200: WorkloadDetailSerializer})
    def post(self, request: Request, namespace: str, name: str) -> Response:
        """Hold a workload (Kueue's spec.active=false); a running workload is evicted."""
        return self.act(namespace, name, lambda *what: workloads.hold(*what, actor=self.access.username))


class ReleaseView(_ActionView):
    """`workloads/{namespace}/{name}/release/`."""

    verb = "release"

    @extend_schema(operation_id="workloads_release", request=None, responses={200: WorkloadDetailSerializer})
    def post(self, request: Request, namespace: str, name: str) -> Response:
        """Release a held workload: it queues again."""
        return self.act(namespace, name, lambda *what: workloads.release(*what, actor=self.access.username))


class RequeueView(_ActionView):
    """`workloads/{namespace}/{name}/requeue/`."""

    verb = "requeue"

    @extend_schema(operation_id="workloads_requeue", request=None, responses={200: WorkloadDetailSerializer})
    def post(self, request: Request, namespace: str, name: str) -> Response:
        """Stop a workload that holds quota and queue it again. It may be admitted again at once."""
        return self.act(namespace, name, lambda *what: workloads.requeue(*what, actor=self.access.username))


class PriorityView(_ActionView):
    """`workloads/{namespace}/{name}/priority/`."""

    verb = "priority"

    @extend_schema(
        operation_id="workloads_priority", request=PriorityInputSerializer, responses={200: WorkloadDetailSerializer}
    )
    def post(self, request: Request, namespace: str, name: str) -> Response:
        """Change the priority of a workload, to a number or the value of a WorkloadPriorityClass."""
        self.require("submit", "Workload", namespace, name)
        value, class_name = self._read(request.data)
        self._require_priority(namespace, name, value, class_name)
        return self.act(
            namespace,
            name,
            lambda cluster, keys: workloads.change_priority(
                cluster, keys, value, priority_class_name=class_name, actor=self.access.username
            ),
        )

    def _require_priority(self, namespace: str, name: str, value: int, class_name: str) -> None:
        _require_known(value)
        if self.access.may("protect", "Workload", namespace):
            return
        row = Workload.objects.filter(cluster=self.cluster, namespace=namespace, name=name).first()
        if row is None:
            raise self.missing("Workload", namespace, name)
        _require_class(self.cluster, namespace, row.queue_name, class_name)

    def _read(self, data: Any) -> tuple[int, str]:
        serializer = PriorityInputSerializer(data=json_object(data))
        serializer.is_valid(raise_exception=True)
        return _priority_of(self.cluster, serializer.validated_data)


def _priority_of(cluster: Cluster, given: Mapping[str, Any]) -> tuple[int, str]:
    """Return the number, and the class that it is of, if any."""
    if ("priority" in given) == ("priority_class" in given):
        raise ValidationError({"priority": "Give either priority or priority_class."})
    if "priority" in given:
        return given["priority"], ""
    name = given["priority_class"]
    found = WorkloadPriorityClass.objects.filter(cluster=cluster, name=name).first()
    if found is None:
        rule = f"There is no WorkloadPriorityClass {name!r} in cluster {cluster.name}."
        raise ValidationError({"priority_class": rule})
    return found.value, name


def _require_known(value: int) -> None:
    if value > MAX_PRIORITY:
        raise ValidationError({"priority": f"must be at most {MAX_PRIORITY}"})


def _require_class(cluster: Cluster, namespace: str, queue: str, class_name: str) -> None:
    """Submitters choose among the classes that the namespace or the LocalQueue allows; numbers are for admins."""
    if not class_name:
        raise NotPermitted("A numeric priority requires the role admin in the namespace: use a priority class.")
    problem = class_problem(cluster, namespace, queue, class_name)
    if problem:
        raise NotPermitted(f"{class_name} {problem}.")


def _key(namespace: str, name: str) -> dict[str, str]:
    return {"namespace": namespace, "name": name}


class _BulkActionView(ClusterView):
    """One action on many workloads; answers with the changed ones."""

    serializer_class = KeysSerializer

    def keys(self, data: Any) -> list[Key]:
        """Return the workloads named; raises `NotPermitted` unless all of them may be acted on."""
        return self.permitted(self.read(KeysSerializer, data))

    def read(self, shape: type[KeysSerializer], data: Any) -> Mapping[str, Any]:
        """Return the body, which is checked only once: checking thousands of names takes longer than acting on them."""
        serializer = shape(data=json_object(data))
        serializer.is_valid(raise_exception=True)
        return dict(serializer.validated_data)

    def permitted(self, given: Mapping[str, Any]) -> list[Key]:
        """Return the workloads of a checked body; raises `NotPermitted` unless all of them may be acted on."""
        keys = [(key["namespace"], key["name"]) for key in given["workloads"]]
        require_all(self.access, "submit", {("Workload", namespace) for namespace, _ in keys})
        require_owner(self.cluster, self.access, keys)
        return keys

    verb: ClassVar[str]

    def take(self, keys: list[Key], action: Action) -> Response:
        """Perform the action, and return the changed workloads."""
        changed = in_pieces(partial(action, actor=self.access.username), self.cluster, keys)
        return self.answer(keys, changed)

    def answer(self, asked: list[Key], changed: list[Key]) -> Response:
        """Return the changed workloads, and why the others did not change."""
        left = sorted(set(asked) - set(changed))
        states = _states(self.cluster, left) if left else {}
        skipped = [
            {"reason": "Conflict", "message": _why_not(self.verb, states[key])}
            if key in states
            else {"reason": "NotFound", "message": f"There is no Workload {'/'.join(key)}."}
            for key in left
        ]
        return Response(
            {
                "changed": [_key(*key) for key in changed],
                "skipped": [_key(*key) | why for key, why in zip(left, skipped, strict=True)],
            }
        )


class BulkCancelView(_BulkActionView):
    """`workloads/cancel/`."""

    verb = "cancel"

    @extend_schema(operation_id="workloads_cancel_many", request=KeysSerializer, responses={200: ChangedSerializer})
    def post(self, request: Request) -> Response:
        """End many workloads for good."""
        keys = self.keys(request.data)
        return self.take(keys, workloads.cancel)


class BulkHoldView(_BulkActionView):
    """`workloads/hold/`."""

    verb = "hold"

    @extend_schema(operation_id="workloads_hold_many", request=KeysSerializer, responses={200: ChangedSerializer})
    def post(self, request: Request) -> Response:
        """Hold many workloads."""
        keys = self.keys(request.data)
        return self.take(keys, workloads.hold)


class BulkReleaseView(_BulkActionView):
    """`workloads/release/`."""

    verb = "release"

    @extend_schema(operation_id="workloads_release_many", request=KeysSerializer, responses={200: ChangedSerializer})
    def post(self, request: Request) -> Response:
        """Release many held workloads: they queue again."""
        keys = self.keys(request.data)
        return self.take(keys, workloads.release)


class BulkRequeueView(_BulkActionView):
    """`workloads/requeue/`."""

    verb = "requeue"

    @extend_schema(operation_id="workloads_requeue_many", request=KeysSerializer, responses={200: ChangedSerializer})
    def post(self, request: Request) -> Response:
        """Stop many workloads that hold quota and queue them again."""
        keys = self.keys(request.data)
        return self.take(keys, workloads.requeue)


class BulkPriorityView(_BulkActionView):
    """`workloads/priority/`."""

    verb = "priority"
    serializer_class = PriorityOfManySerializer

    @extend_schema(
        operation_id="workloads_priority_many", request=PriorityOfManySerializer, responses={200: ChangedSerializer}
    )
    def post(self, request: Request) -> Response:
        """Change the priority of many workloads, to a number or the value of a WorkloadPriorityClass."""
        given = self.read(PriorityOfManySerializer, request.data)
        keys = self.permitted(given)
        value, class_name = _priority_of(self.cluster, given)
        _require_known(value)
        for namespace, queue in self._queues(keys):
            if not self.access.may("protect", "Workload", namespace):
                _require_class(self.cluster, namespace, queue, class_name)
        return self.take(keys, partial(workloads.change_priority, priority=value, priority_class_name=class_name))

    def _queues(self, keys: list[Key]) -> list[Key]:
        """Return the namespaces and LocalQueues that the workloads are of."""
        names = {name for _, name in keys}
        namespaces = {namespace for namespace, _ in keys}
        rows = Workload.objects.filter(cluster=self.cluster, namespace__in=namespaces, name__in=names)
        wanted = set(keys)
        found = rows.values_list("namespace", "name", "queue_name")
        return sorted({(namespace, queue) for namespace, name, queue in found if (namespace, name) in wanted})


class BulkFinishView(_BulkActionView):
    """`workloads/finish/`."""

    verb = "finish"
    serializer_class = FinishSerializer

    @extend_schema(operation_id="workloads_finish_many", request=FinishSerializer, responses={200: ChangedSerializer})
    def post(self, request: Request) -> Response:
        """Report that workloads which run elsewhere have ended. A workload with a job is refused (409): it ends with
        the job.
        """
        given = self.read(FinishSerializer, request.data)
        keys = self.permitted(given)
        workloads.require_no_jobs(self.cluster, keys)
        reason = FinishedReason(given["reason"])
        return self.take(keys, partial(workloads.record_finished, reason=reason, message=given["message"]))
