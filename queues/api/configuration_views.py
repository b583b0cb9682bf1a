"""Configuration kinds over REST: lists and single objects."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar, Final

from django.db import transaction
from django.db.models import Q, QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.exceptions import ValidationError
from rest_framework.mixins import ListModelMixin
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api.if_match import if_match
from accounts.api.scope import ClusterView, json_object
from accounts.api.warning_header import warning_header
from accounts.models import Cluster, ClusterMode, DeviceBinding, Namespace, RoleBinding
from accounts.services.access import access_of, accesses_of, clusters_of
from accounts.services.apply_result import Action
from accounts.services.cluster_settings import (
    UnknownCredentials,
    set_accepted_managers,
    set_device_binding,
    set_mode,
    set_placement,
    set_serves_kueue_objects,
    set_telemetry_urls,
    settings_version,
    shown_telemetry_urls,
)
from accounts.services.precondition import etag
from accounts.services.reach import Reach
from foundation.exceptions import PreconditionFailed, PreconditionRequired
from kinds.declaration import Kind
from queues.api import configuration_serializers as shapes
from queues.api.filters import NamespaceFilter
from queues.kinds import KINDS
from queues.services.configuration import apply_json, delete_object
from queues.services.owners import require_below
from scheduling.model.vocabulary import PlacementScope


class KindView(ClusterView):
    """A view of one configuration kind; `queryset` names its model."""

    kind: ClassVar[str]

    def visible(self) -> QuerySet[Any]:
        """Return the rows that the user may see; raises `NotPermitted` for a kind without any."""
        return self.in_clusters(self.reach.permitting("view", self.kind))

    def in_clusters(self, reach: Reach) -> QuerySet[Any]:
        """Return the rows of these clusters."""
        return self.get_queryset().filter(reach.rows())

    def render(self, rows: list[Any]) -> list[dict[str, Any]]:
        """Rows as JSON."""
        return [{"cluster": self._cluster_of(row), **KINDS[self.kind].to_json(row)} for row in rows]

    def _cluster_of(self, row: Any) -> str:
        return "" if row.cluster_id is None else self.reach.name(row.cluster_id)


class KindListView(ListModelMixin, KindView):
    """All objects of a kind, by name."""

    keyset: tuple[str, ...] = ("name",)

    def in_clusters(self, reach: Reach) -> QuerySet[Any]:
        """Include roles for all clusters: they are created on the admin site, and apply here, too."""
        if KINDS[self.kind].model is not RoleBinding:
            return super().in_clusters(reach)
        return self.get_queryset().filter(reach.rows() | Q(cluster=None))

    def get(self, request: Request) -> Response:
        """List the objects of this kind that the user may see, by name."""
        page = self.paginate_queryset(self.filter_queryset(self.visible()))
        return self.get_paginated_response(self.render(page or []))


class KindDetailView(KindView):
    """One object of a kind."""

    filterset_class = None

    def get(self, request: Request, name: str, namespace: str = "") -> Response:
        """Return one object."""
        return self.answer(self.find(name, namespace))

    def answer(self, row: Any, code: int = status.HTTP_200_OK, **headers: str) -> Response:
        """Return the row as JSON."""
        return Response(self.render([row])[0], code, headers=headers)

    def find(self, name: str, namespace: str = "") -> Any:
        """Return the row; raises `NotFound` if it does not exist, or the user may not see it."""
        key = {"namespace": namespace, "name": name} if namespace else {"name": name}
        row = self.visible().filter(**key).first()
        if row is None:
            raise self.missing(self.kind, *key.values())
        return row


class EditView(KindDetailView):
    """One object that can be changed. `namespace` is empty for kinds that have none."""

    has_etag: ClassVar = True
    asks_for_if_match: ClassVar = ("PUT", "PATCH")

    also_answers: ClassVar = {
        "PUT": {status.HTTP_201_CREATED: "The object did not exist and was created."},
        "DELETE": {status.HTTP_202_ACCEPTED: "The object is in use: it will be deleted when nothing uses it."},
    }

    def put(self, request: Request, name: str, namespace: str = "") -> Response:
        """Create or replace the object. Omitted fields get Kueue's defaults.

        Replacing needs `If-Match`, or `generation` in the body (428); `*` matches any version.
        """
        self._require_edit()
        return self._apply(request, name, namespace)

    def patch(self, request: Request, name: str, namespace: str = "") -> Response:
        """Change the fields in the body (JSON merge patch): null restores the default, lists are replaced as a whole.

        Replacing quotas needs `If-Match`, or `generation` in the body (428).
        """
        self._require_edit()
        require_below(self.access, self.cluster, [(self.kind, namespace, name)])
        self.find(name, namespace)
        return self._apply(request, name, namespace, merge=True)

    def delete(self, request: Request, name: str, namespace: str = "") -> Response:
        """Delete the object, or mark it for deletion (202): it is deleted once nothing uses it."""
        self._require_edit()
        require_below(self.access, self.cluster, [(self.kind, namespace, name)])
        actor = self.access.username
        with self._present_state_of_a_refusal(name, namespace):
            if not delete_object(self.cluster, self.kind, name, namespace, actor=actor, precondition=if_match(request)):
                return Response(status=status.HTTP_204_NO_CONTENT)
        return self.answer(self.find(name, namespace), status.HTTP_202_ACCEPTED)

    def answer(self, row: Any, code: int = status.HTTP_200_OK, **headers: str) -> Response:
        """Return the row as JSON, with the ETag that a change of it may name in If-Match."""
        return super().answer(row, code, ETag=etag(row.generation), **headers)

    def _require_edit(self) -> None:
        """Raise `NotPermitted` for users who may change no object of this kind; within the tree, `require_below`
        checks further."""
        if not self.access.may_in_tree(self.kind):
            self.access.require("submit", self.kind)

    def _apply(self, request: Request, name: str, namespace: str, *, merge: bool = False) -> Response:
        # The answer is read in the write's transaction: its ETag is that of this write, not of one that came after it.
        with self._present_state_of_a_refusal(name, namespace), transaction.atomic():
            require_below(self.access, self.cluster, [(self.kind, namespace, name)], may_create=True)
            applied = apply_json(
                self.cluster,
                KINDS[self.kind],
                json_object(request.data),
                name=name,
                namespace=namespace,
                actor=self.access.username,
                merge=merge,
                precondition=if_match(request),
                unread_is_refused=True,
            )
            require_below(self.access, self.cluster, [(self.kind, namespace, name)])
            row = self.find(name, namespace)
        created = applied.action is Action.CREATED
        code = status.HTTP_201_CREATED if created else status.HTTP_200_OK
        location = {"Location": request.path} if created else {}
        return self.answer(row, code, **location, **warning_header(applied.warnings))

    @contextmanager
    def _present_state_of_a_refusal(self, name: str, namespace: str) -> Iterator[None]:
        try:
            yield
        except (PreconditionFailed, PreconditionRequired) as error:
            key = {"namespace": namespace, "name": name} if namespace else {"name": name}
            row = self.visible().filter(**key).first()
            error.current = None if row is None else self.render([row])[0]
            raise


class _Objects(KindView):
    """A kind whose objects every user with a role may read, or those in the user's namespaces."""

    def visible(self) -> QuerySet[Any]:
        """Return the objects that the user may see."""
        kind = KINDS[self.kind]
        column = "namespace" if kind.namespaced else "name"
        if not kind.namespaced and kind.model is not Namespace:
            return super().visible()
        return self.get_queryset().filter(self.reach.rows_in_namespaces(column))


def _views_of(kind: Kind) -> tuple[type[KindListView], type[KindDetailView]]:
    """Return the views of a kind's list and of one of its objects."""
    common: dict[str, Any] = {
        "kind": kind.name,
        "queryset": kind.model.objects.all(),
        "serializer_class": shapes.serializer_of(kind.name) if kind.fields else shapes.ObjectSerializer,
        "writes_what_is_mirrored": kind.mirrored,
    }
    listed = {**common, "spans_clusters": True}
    if kind.namespaced:
        listed |= {"keyset": ("namespace", "name"), "filterset_class": NamespaceFilter}
    return (
        type(f"{kind.name}ListView", (_Objects, KindListView), {**listed, "__doc__": f"`{kind.plural}/`."}),
        type(f"{kind.name}View", (_Objects, EditView), {**common, "__doc__": f"One {kind.name}."}),
    )


_SERVED_BY_THE_ENGINE: Final = ("Cohort", "ClusterQueue", "LocalQueue", "ResourceFlavor")
"""Served by the engine's API, which has their status, pending workloads and nodes."""

VIEWS: Final[Mapping[str, tuple[type[KindListView], type[KindDetailView]]]] = {
    name: _views_of(kind) for name, kind in KINDS.items() if name not in _SERVED_BY_THE_ENGINE
}


class ClusterListView(ListModelMixin, ClusterView):
    """`clusters/`."""

    serializer_class = shapes.ClusterSerializer
    queryset = Cluster.objects.all()
    keyset = ("name",)

    def get(self, request: Request) -> Response:
        """List the clusters in which the user has a role."""
        page = self.paginate_queryset(clusters_of(request.user)) or []
        accesses = accesses_of(request.user, [row.name for row in page])
        return self.get_paginated_response([_cluster_json(row, accesses[row.name].sees_everything) for row in page])


class ClusterDetailView(ClusterView):
    """`clusters/{name}/`."""

    serializer_class = shapes.ClusterSerializer
    queryset = Cluster.objects.all()
    writes_what_is_mirrored = False
    has_etag: ClassVar = True

    def get(self, request: Request, name: str) -> Response:
        """Return one cluster with its settings, and an ETag for changing them."""
        return self._answer(request, self._find(request, name))

    @extend_schema(request=shapes.ClusterSettingsSerializer)
    def patch(self, request: Request, name: str) -> Response:
        """Change the settings of a cluster. Only a cluster admin may.

        With If-Match, nothing changes if the settings differ from those that were read (412).
        """
        row = self._find(request, name)
        access_of(request.user, row).require("submit", "Cluster")
        asked = shapes.ClusterSettingsSerializer(data=json_object(request.data))
        asked.is_valid(raise_exception=True)
        with transaction.atomic():
            row = Cluster.objects.select_for_update(no_key=True).get(pk=row.pk)
            self._check_unchanged(request, row)
            self._set(row, asked.validated_data)
            return self._answer(request, self._find(request, name))

    def _check_unchanged(self, request: Request, row: Cluster) -> None:
        precondition = if_match(request)
        if precondition is None:
            return
        try:
            precondition.check("Cluster", row.name, settings_version(row))
        except PreconditionFailed as error:
            error.current = _cluster_json(row, True) | {"generation": settings_version(row)}
            raise

    @staticmethod
    def _set(row: Cluster, asked: Mapping[str, Any]) -> None:
        if "mode" in asked:
            set_mode(row, ClusterMode(asked["mode"]))
        if "serves_kueue_objects" in asked:
            set_serves_kueue_objects(row, serves=asked["serves_kueue_objects"])
        if "device_binding" in asked:
            set_device_binding(row, DeviceBinding(asked["device_binding"]))
        if "placement" in asked:
            set_placement(row, PlacementScope(asked["placement"]))
        if "accepts_workloads_from" in asked:
            set_accepted_managers(row, asked["accepts_workloads_from"])
        if "telemetry_urls" in asked:
            try:
                set_telemetry_urls(row, asked["telemetry_urls"])
            except UnknownCredentials as error:
                places: dict[Any, list[str]] = {error.place: [str(error)]}
                raise ValidationError({"telemetry_urls": places}) from error

    def _answer(self, request: Request, row: Cluster) -> Response:
        body = _cluster_json(row, access_of(request.user, row).sees_everything)
        return Response(body, headers={"ETag": etag(settings_version(row))})

    def _find(self, request: Request, name: str) -> Cluster:
        row = clusters_of(request.user).filter(name=name).first()
        if row is None:
            raise self.missing("Cluster", name)
        return row


def _cluster_json(row: Cluster, whole: bool) -> dict[str, Any]:
    return {
        "name": row.name,
        "mode": row.mode,
        "serves_kueue_objects": row.serves_kueue_objects,
        "device_binding": row.device_binding,
        "placement": row.placement,
        "accepts_workloads_from": row.accepts_workloads_from if whole else [],
        "server_url": row.server_url if whole else "",
        "configuration": row.configuration if whole else {},
        "device_plugin": (row.device_plugin_configuration.get("settings") or {}) if whole else {},
        "telemetry_urls": shown_telemetry_urls(row) if whole else [],
        "created_at": row.created_at,
    }
