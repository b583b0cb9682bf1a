"""The filters of lists; each is an exact match unless it says otherwise."""

from collections import defaultdict
from collections.abc import Mapping
from typing import Any, Final

from django import forms
from django.db.models import Q, QuerySet
from django_filters import rest_framework as filters
from rest_framework.exceptions import ValidationError

from accounts.api.names_filter import ChoicesFilter, NamesFilter, names_in
from queues.api.label_selector import with_labels
from queues.models import LocalQueue, Pod, PodSet, Workload
from queues.querysets import workload_state
from scheduling.model.vocabulary import WorkloadState, WorkloadStatus

MAX_NAMES: Final = 100
"""The number of names in a delta of the live stream."""
_STATUSES: Final = [(status.value, status.value) for status in WorkloadStatus]
_STATES: Final = [(state.value, state.value) for state in WorkloadState]


def living_pods() -> QuerySet[Pod]:
    """Pods that have not ended."""
    return Pod.objects.exclude(phase__in=("Succeeded", "Failed"))


_TIMES: Final[Mapping[str, str]] = {"": "created_at", "admitted_": "admitted_at", "finished_": "finished_at"}
"""The columns of the ranges `since` and `until`, by the prefix of these words."""


def _start(prefix: str, of: str) -> filters.IsoDateTimeFilter:
    return filters.IsoDateTimeFilter(
        field_name=_TIMES[prefix], lookup_expr="gte", help_text=f"{of} at or after this time."
    )


def _end(prefix: str, of: str) -> filters.IsoDateTimeFilter:
    return filters.IsoDateTimeFilter(field_name=_TIMES[prefix], lookup_expr="lt", help_text=f"{of} before this time.")


class _WorkloadForm(forms.Form):
    """Refuses a range that ends before it begins, because it could never match."""

    def clean(self) -> dict[str, Any]:
        """Return the values. A reversed or empty range is an error of its `since`."""
        found: dict[str, Any] = super().clean() or {}
        for prefix in _TIMES:
            since, until = found.get(f"{prefix}since"), found.get(f"{prefix}until")
            if since is not None and until is not None and since >= until:
                rule = f"{since.isoformat()} is not before {prefix}until, {until.isoformat()}."
                self.add_error(f"{prefix}since", rule)
        return found


class WorkloadFilter(filters.FilterSet):  # type: ignore[misc]  # the library is not typed
    """Filters of `workloads/`."""

    cluster_queue = NamesFilter(field_name="cluster_queue_name")
    local_queue = NamesFilter(field_name="queue_name")
    namespace = NamesFilter()
    status = ChoicesFilter(choices=_STATUSES)
    state = ChoicesFilter(method="in_state", choices=_STATES)
    reason = NamesFilter()
    active = filters.BooleanFilter()
    priority_class = NamesFilter(field_name="priority_class_name")
    submitted_by = NamesFilter()
    names = filters.CharFilter(
        method="with_names",
        help_text=f"Only these workloads, each as `namespace/name`, separated by commas; at most {MAX_NAMES}.",
    )
    variants_of = filters.CharFilter(
        method="with_parent",
        help_text="The variants of this workload (concurrent admission), as `namespace/name`. Without it no variants.",
    )
    search = filters.CharFilter(method="search_key", help_text="A substring of `namespace/name`, ignoring case.")
    node = NamesFilter(method="on_node", help_text="Workloads with a pod on one of these nodes, separated by commas.")
    resource = NamesFilter(
        method="asking_for", help_text="Workloads that request one of these resources, separated by commas."
    )
    label = filters.CharFilter(
        method="with_labels",
        help_text="A label selector in Kubernetes' syntax: `key`, `!key`, `key=value`, `key!=value`, `key in (a,b)` or "
        "`key notin (a,b)`; in addition `key^=prefix` and `key*=part`. All conditions of a comma-separated "
        "list must hold.",
    )
    since = _start("", "Submitted")
    until = _end("", "Submitted")
    admitted_since = _start("admitted_", "Admitted")
    admitted_until = _end("admitted_", "Admitted")
    finished_since = _start("finished_", "Ended")
    finished_until = _end("finished_", "Ended")

    class Meta:
        model = Workload
        form = _WorkloadForm
        fields: list[str] = []

    def with_names(self, workloads: QuerySet[Workload], name: str, value: str) -> QuerySet[Workload]:
        """Return the named workloads that exist."""
        keys = value.split(",")
        if len(keys) > MAX_NAMES:
            rule = f"Too many: {len(keys)} names; at most {MAX_NAMES} are allowed. Split the request."
            raise ValidationError({name: rule})
        by_namespace: dict[str, list[str]] = defaultdict(list)
        for key in keys:
            namespace, slash, rest = key.strip().partition("/")
            if not (namespace and slash and rest):
                raise ValidationError({name: f"{key!r} is not the name of a workload. Write namespace/name."})
            by_namespace[namespace].append(rest)
        found = Q()
        for namespace, names in by_namespace.items():
            found |= Q(namespace=namespace, name__in=names)
        return workloads.filter(found)

    def filter_queryset(self, queryset: QuerySet[Workload]) -> QuerySet[Workload]:
        """Filter the list. Variants are listed only on request, because they pursue the flavors of a workload that the
        list already contains."""
        found: QuerySet[Workload] = super().filter_queryset(queryset)
        return found if self.form.cleaned_data.get("variants_of") else found.filter(parent_name="")

    def with_parent(self, workloads: QuerySet[Workload], name: str, value: str) -> QuerySet[Workload]:
        """Return the variants of a workload."""
        namespace, slash, rest = value.partition("/")
        if not (namespace and slash and rest):
            raise ValidationError({name: f"{value!r} is not the name of a workload. Write namespace/name."})
        return workloads.filter(namespace=namespace, parent_name=rest)

    def search_key(self, workloads: QuerySet[Workload], name: str, value: str) -> QuerySet[Workload]:
        """Return the workloads whose `namespace/name` contains the text."""
        namespace, slash, rest = value.partition("/")
        if not slash:
            return workloads.filter(Q(name__icontains=value) | Q(namespace__icontains=value))
        return workloads.filter(namespace__iendswith=namespace, name__istartswith=rest)

    def in_state(self, workloads: QuerySet[Workload], name: str, value: list[str]) -> QuerySet[Workload]:
        """Return the workloads in one of these states."""
        return workloads.alias(asked_state=workload_state()).filter(asked_state__in=value)

    # Subqueries, not joins: a workload with many pods is one workload, in lists and in counts.

    def on_node(self, workloads: QuerySet[Workload], name: str, value: str) -> QuerySet[Workload]:
        """Keep the workloads that run on one of the nodes now."""
        return workloads.filter(pk__in=living_pods().filter(node_name__in=names_in(value)).values("workload_id"))

    def asking_for(self, workloads: QuerySet[Workload], name: str, value: str) -> QuerySet[Workload]:
        """Keep the workloads with a pod set that requests one of the resources."""
        return workloads.filter(
            pk__in=PodSet.objects.filter(requests__has_any_keys=names_in(value)).values("workload_id")
        )

    def with_labels(self, workloads: QuerySet[Workload], name: str, value: str) -> QuerySet[Workload]:
        """Keep the workloads whose labels match the selector."""
        return with_labels(workloads, name, value)


class NamespaceFilter(filters.FilterSet):  # type: ignore[misc]  # the library is not typed
    """Filters of lists of namespaced objects."""

    namespace = NamesFilter()


class LocalQueueFilter(filters.FilterSet):  # type: ignore[misc]  # the library is not typed
    """Filters of `local-queues/`."""

    namespace = NamesFilter()
    cluster_queue = NamesFilter(field_name="cluster_queue_name")

    class Meta:
        model = LocalQueue
        fields: list[str] = []


def query_text(parameters: Any, name: str) -> str:
    """Return a query parameter, empty if it is absent."""
    return str(parameters.get(name, ""))
