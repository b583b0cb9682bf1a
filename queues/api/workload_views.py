"""Workloads over REST: submit, list, read, remove."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Final
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import status
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api.flags import flag
from accounts.api.idempotency import IDEMPOTENCY_KEY, done_once
from accounts.api.scope import ClusterView
from accounts.api.warning_header import warning_header
from accounts.kinds.frameworks import disabled_mistake
from accounts.models import Cluster
from accounts.services.access import Access
from accounts.services.apply_result import Submitted
from foundation.exceptions import ManifestErrors, NotPermitted
from foundation.shown_past import current_past
from queues.api.documents import JSON_AND_YAML
from queues.api.filters import WorkloadFilter, query_text
from queues.api.serializers import (
    CreatedSerializer,
    WorkloadDetailSerializer,
    WorkloadEventSerializer,
    WorkloadInputSerializer,
    WorkloadSerializer,
)
from queues.api.watches import WATCH_ANSWERS, WATCH_PARAMETERS, asks_to_wait, wait_for
from queues.api.workload_input import KnownDocuments, read_workload
from queues.api.workload_rows import workload_detail_json, workload_values, workloads_json
from queues.manifests import workload_specs
from queues.manifests.bounds import size_mistake
from queues.manifests.job import JobManifest
from queues.manifests.pod_group import states_group
from queues.manifests.workload import WorkloadSpec
from queues.models import Workload, WorkloadEvent
from queues.querysets import QueuePositions
from queues.services.cluster_objects import StoredObjects
from queues.services.jobs import read_job_object
from queues.services.limits import check_rate
from queues.services.owners import require_owner, require_owner_of_submitted
from queues.services.pod_groups.submission import submit_group_pods
from queues.services.pod_policy import check_workloads
from queues.services.submission import CreatedWorkload, create_workloads, missing_queues
from queues.services.visibility import Reader, readers_of
from queues.services.workloads import delete_workloads
from scheduling.manifest import LocatedError, MistakeReason, ValidationReport
from scheduling.manifest.syntax import qualified_name

_POSITION = "position"
_KEYSETS: Mapping[str, tuple[str, ...]] = {
    "-id": ("-id",),
    "id": ("id",),
    "name": ("name", "-id"),
    "-name": ("-name", "-id"),
    "namespace": ("namespace", "-id"),
    "-namespace": ("-namespace", "-id"),
    "priority": ("priority", "-id"),
    "-priority": ("-priority", "-id"),
    "status": ("status", "-id"),
    "-status": ("-status", "-id"),
    "cluster_queue": ("cluster_queue", "-id"),
    "-cluster_queue": ("-cluster_queue", "-id"),
    "reason": ("reason", "-id"),
    "-reason": ("-reason", "-id"),
    "submitted_by": ("submitted_by", "-id"),
    "-submitted_by": ("-submitted_by", "-id"),
}
_ORDERINGS = (*_KEYSETS, _POSITION)
_ORDERING = OpenApiParameter(
    "ordering",
    OpenApiTypes.STR,
    enum=_ORDERINGS,
    default="-id",
    description=(
        "`-id`: newest first; `-` reverses any order. `position`: pending workloads of a `cluster_queue` in "
        "queue order."
    ),
)
MAX_ANNOTATIONS: Final = 10
_ANNOTATIONS = OpenApiParameter(
    "annotations",
    OpenApiTypes.STR,
    description=f"Annotation keys, separated by commas, at most {MAX_ANNOTATIONS}: rows include these `annotations`.",
)
_OF_POSITIONS: Final = frozenset({"cluster_queue", "local_queue", "namespace", "search"})
"""The filters of the pending workloads of one ClusterQueue."""
_ALL: Final = 2**31 - 1


class WorkloadsView(ClusterView):
    """`workloads/`."""

    serializer_class = WorkloadSerializer
    queryset = Workload.objects.none()
    filterset_class = WorkloadFilter
    spans_clusters = True
    looks_back = True
    parser_classes = JSON_AND_YAML
    takes_one_or_many = True

    @property
    def keyset(self) -> tuple[str, ...]:  # type: ignore[override]  # it depends on the request here
        """Return the requested order; equal rows are sorted newest first."""
        return _KEYSETS.get(query_text(self.request.query_params, "ordering"), _KEYSETS["-id"])

    def get_queryset(self) -> QuerySet[Workload]:
        """Return the workloads that the user may see."""
        return Workload.objects.filter(self.reach.rows_in_namespaces())

    @extend_schema(parameters=[_ORDERING, _ANNOTATIONS], responses=WorkloadSerializer(many=True))
    def get(self, request: Request) -> Response:
        """Return a page of the workloads that the user may see."""
        ordering = query_text(request.query_params, "ordering") or "-id"
        if ordering not in _ORDERINGS:
            raise ValidationError({"ordering": f"{ordering!r} is not one of {', '.join(_ORDERINGS)}."})
        if ordering == _POSITION:
            return self._by_position(request)
        annotations = _asked_annotations(query_text(request.query_params, "annotations"))
        found = workload_values(self.filter_queryset(self.get_queryset()), annotations=annotations)
        page = self.paginate_queryset(found) or []
        return self.get_paginated_response(workloads_json(page, readers_of(self.reach), annotations))

    def _by_position(self, request: Request) -> Response:
        parameters = request.query_params
        after = query_text(parameters, "after") or "0"
        limit = query_text(parameters, "limit") or "100"
        if not query_text(parameters, "cluster_queue"):
            raise ValidationError({"cluster_queue": "Positions belong to one ClusterQueue: name it."})
        if self.reach.is_of_several:
            raise ValidationError({"cluster": "Positions belong to one ClusterQueue: name its cluster."})
        unused = sorted(set(WorkloadFilter.base_filters) & set(parameters) - _OF_POSITIONS)
        if unused:
            rule = f"Forbidden with ordering=position, which only accepts {', '.join(sorted(_OF_POSITIONS))}."
            raise ValidationError(dict.fromkeys(unused, rule))
        for name in ("cluster_queue", "local_queue", "namespace"):
            if "," in query_text(parameters, name):
                raise ValidationError({name: "Positions belong to one ClusterQueue: name only one."})
        for name, text, most in (("after", after, 10**9), ("limit", limit, 1000)):
            if not (text.isascii() and text.isdigit() and int(text[:10]) <= most):
                raise ValidationError({name: f"{text!r} is not a whole number up to {most}."})
        wanted = QueuePositions(
            self.cluster.pk,
            query_text(parameters, "cluster_queue"),
            self.access.visible_namespaces(),
            namespace=query_text(parameters, "namespace"),
            local_queue=query_text(parameters, "local_queue"),
            search=query_text(parameters, "search"),
            after=int(after),
            limit=int(limit) + 1,
        )
        positions = dict(wanted.read())
        more = len(positions) > int(limit)
        if more:
            positions.popitem()
        annotations = _asked_annotations(query_text(parameters, "annotations"))
        found = workload_values(Workload.objects.filter(pk__in=positions), annotations=annotations)
        rows = workloads_json(found, readers_of(self.reach), annotations)
        for row in rows:
            row["position"] = positions[row["id"]]
        rows.sort(key=lambda row: row["position"])
        total = {"total": len(replace(wanted, after=0, limit=_ALL).read())} if flag(request, "total") else {}
        return Response({"results": rows, "next": str(rows[-1]["position"]) if more and rows else None, **total})

    @extend_schema(
        request={
            "application/json": WorkloadInputSerializer(many=True),
            "application/yaml": OpenApiTypes.STR,
        },
        parameters=[IDEMPOTENCY_KEY],
        responses={201: CreatedSerializer},
    )
    @done_once
    def post(self, request: Request) -> Response:
        """Submit one workload or thousands, all or none.

        JSON: a workload or a list of workloads, each as below or as a Job, Pod, Deployment or Workload manifest. YAML:
        manifests. An error names the workload by its index and the field by its path, and nothing is stored. The pods
        of a group are one workload, even if they are submitted one by one.
        """
        username = self.access.username
        check_rate(len(request.data) if isinstance(request.data, list) else 1, username)
        specs, pods = _read(self.cluster, request.data)
        everything = [*specs, *(spec for spec, _ in pods)]
        _require_rights(self.access, everything)
        admins = {spec.namespace for spec in everything if self.access.may("protect", "Workload", spec.namespace)}
        errors = check_workloads(self.cluster, everything, admins=frozenset(admins))
        if errors:
            raise ManifestErrors(sorted(errors, key=lambda error: error.document))
        members = [pod for _, pod in pods]
        # a pod joins and thereby changes its group's workload; all other submitted objects are new
        require_owner_of_submitted(self.cluster, self.access, members, [])
        with transaction.atomic():
            created: list[CreatedWorkload | Workload] = [
                *create_workloads(self.cluster, specs, actor=username, submitted_by=username, rate_is_checked=True),
                *submit_group_pods(self.cluster, members, actor=username, submitted_by=username),
            ]
        stored = [
            {"id": workload.id, "uid": workload.uid, "namespace": workload.namespace, "name": workload.name}
            for workload in created
        ]
        missing = missing_queues(self.cluster, [(spec.namespace, spec.queue_name) for spec in everything])
        headers = warning_header(missing.values())
        if len(created) == 1:
            headers["Location"] = f"{request.path}{created[0].namespace}/{created[0].name}/"
        return Response({"workloads": stored}, status.HTTP_201_CREATED, headers=headers)


def _asked_annotations(text: str) -> list[str]:
    """Return the keys, each once; raises ValidationError."""
    keys = list(dict.fromkeys(key.strip() for key in text.split(","))) if text else []
    if len(keys) > MAX_ANNOTATIONS:
        rule = f"Too many: {len(keys)} keys; at most {MAX_ANNOTATIONS} are allowed. Remove some."
        raise ValidationError({"annotations": rule})
    for key in keys:
        broken = qualified_name(key.lower())  # Kubernetes accepts them in any case
        if broken is not None:
            raise ValidationError({"annotations": f"{key!r} is not an annotation key: it {broken}."})
    return keys


class WorkloadView(ClusterView):
    """`workloads/{namespace}/{name}/`."""

    serializer_class = WorkloadDetailSerializer
    looks_back = True
    reads_have_etag: ClassVar = True
    reads_have_limits: ClassVar = True

    @extend_schema(parameters=[*WATCH_PARAMETERS], responses=WATCH_ANSWERS)
    def get(self, request: Request, namespace: str, name: str) -> HttpResponse:
        """Return one workload: the reason why it waits, its quota and its devices.

        Optionally once it has changed, or after every change.
        """
        self.require("view", "Workload", namespace, name)
        found = Workload.objects.filter(cluster=self.cluster, namespace=namespace, name=name)
        if asks_to_wait(request):
            if current_past() is not None:
                raise ValidationError({"at": "Forbidden with a wait for changes: the past does not change."})
            key = found.values_list("pk", flat=True).first()
            if key is None:
                raise self.missing("Workload", namespace, name)
            return wait_for(key, request)
        row = workload_values(found, detail=True).first()
        if row is None:
            raise self.missing("Workload", namespace, name)
        body = workload_detail_json(row, Reader(self.access, self.cluster))
        return Response(body, headers={"ETag": f'"{body["resource_version"]}"'})

    @extend_schema(responses={204: None, 202: WorkloadDetailSerializer})
    def delete(self, request: Request, namespace: str, name: str) -> HttpResponse:
        """Remove a workload. One that holds quota is cancelled first (202) and can be removed once its pods have
        stopped.
        """
        self.require("submit", "Workload", namespace, name)
        require_owner(self.cluster, self.access, [(namespace, name)])
        if delete_workloads(self.cluster, [(namespace, name)], actor=self.access.username):
            return Response(status=status.HTTP_204_NO_CONTENT)
        response = self.get(request, namespace, name)
        response.status_code = status.HTTP_202_ACCEPTED
        return response


class WorkloadEventsView(ClusterView):
    """`workloads/{namespace}/{name}/events/`."""

    serializer_class = WorkloadEventSerializer
    queryset = WorkloadEvent.objects.none()
    keyset = ("-id",)

    @extend_schema(
        parameters=[OpenApiParameter("uid", OpenApiTypes.UUID, description="Events of a deleted workload.")],
        responses=WorkloadEventSerializer(many=True),
    )
    def get(self, request: Request, namespace: str, name: str) -> Response:
        """List the events of a workload, newest first. Events are kept when the workload is deleted: `uid` finds
        them.
        """
        self.require("view", "Workload", namespace, name)
        text = query_text(request.query_params, "uid")
        uid = _uuid(text) if text else self._uid(namespace, name)
        events = WorkloadEvent.objects.filter(
            workload_uid=uid, cluster=self.cluster, namespace=namespace, workload_name=name
        )
        page = self.paginate_queryset(events.values("id", "at", "type", "reason", "message", "actor")) or []
        reader = Reader(self.access, self.cluster)
        for row in page:
            row["message"] = reader.message(row["message"])
        return self.get_paginated_response(page)

    def _uid(self, namespace: str, name: str) -> UUID:
        found = Workload.objects.filter(cluster=self.cluster, namespace=namespace, name=name)
        uid = found.values_list("uid", flat=True).first()
        if uid is None:
            raise self.missing("Workload", namespace, name)
        return uid


def _uuid(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise ValidationError({"uid": f"{text!r} is not a UUID."}) from None


def _read(cluster: Cluster, data: Any) -> tuple[list[WorkloadSpec], list[tuple[WorkloadSpec, Submitted[JobManifest]]]]:
    """Read the workloads of a body, and its pods of groups, each in both forms: as a workload of its own and as a group
    member.
    """
    documents: Sequence[Any] = data if isinstance(data, list) else [data]
    if not documents:
        raise ValidationError({"": "There is no workload in the body."})
    specs: list[WorkloadSpec] = []
    pods: list[tuple[WorkloadSpec, Submitted[JobManifest]]] = []
    errors: list[LocatedError] = []
    objects = StoredObjects(cluster)
    known = KnownDocuments()
    for index, document in enumerate(documents):
        too_large = size_mistake(document, index)
        if too_large is not None:
            errors.append(too_large)
            continue
        try:
            if isinstance(document, Mapping) and "apiVersion" in document:
                of_document = workload_specs(document, index, objects=objects)
                errors += _disabled(cluster, document, index)
                if states_group(document):
                    pods.append((of_document[0], read_job_object(document, ValidationReport(index), objects)))
                else:
                    specs += of_document
            else:
                specs.append(read_workload(document, index, known))
        except ManifestErrors as mistakes:
            errors += mistakes.errors
    if errors:
        raise ManifestErrors(errors)
    return specs, pods


def _disabled(cluster: Cluster, document: Mapping[str, Any], index: int) -> list[LocatedError]:
    """Return the mistake of a job whose kind the Configuration leaves out."""
    kind = str(document.get("kind"))
    rule, remedy = disabled_mistake(cluster.configuration, str(document["apiVersion"]), kind)
    return [LocatedError(index, "kind", kind, rule, remedy, MistakeReason.NOT_SUPPORTED)] if rule else []


def _require_rights(access: Access, specs: Sequence[WorkloadSpec]) -> None:
    """Raises `NotPermitted`, naming each document that the user may not store."""
    refused = [
        LocatedError(
            spec.document,
            "namespace",
            spec.namespace,
            "requires the role admin in the namespace"
            if spec.never_preempt
            else "requires the role submitter in the namespace",
            "Leave never_preempt out." if access.may("submit", "Workload", spec.namespace) else "",
            MistakeReason.NOT_PERMITTED,
        )
        for spec in specs
        if not access.may("protect" if spec.never_preempt else "submit", "Workload", spec.namespace)
    ]
    if refused:
        raise NotPermitted(f"You may not store {len(refused)} of {len(specs)} workloads; nothing was stored.", refused)
