"""Forms of configuration objects. What they hold is tried on the database, by the service that stores it, before it is
stored: so every rule of Kueue holds here, the frozen fields included, and its error stands at the field."""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import yaml
from django import forms
from django.db import transaction

from accounts.exceptions import InvalidRequest, KueuewebError, ManifestErrors
from accounts.models import Cluster
from queues.admin.quota_table import QuotaTableField, place_in_words, rows_of
from queues.manifests.documents import read_documents
from queues.models import ClusterQueue, Cohort, LocalQueue, ResourceFlavor
from queues.services.configuration import apply_object, manifest_of
from queues.services.configuration_input import manifest_from, relocated
from queues.services.configuration_rows import RENDERERS
from queues.services.kinds import KINDS
from scheduling.manifest import LocatedError
from scheduling.model import vocabulary


def _choices(words: Any, *, empty: str = "") -> list[tuple[str, str]]:
    first = [("", empty)] if empty else []
    return first + [(word.value, word.value) for word in words]


class JSONField(forms.JSONField):
    """JSON in a text of a few lines."""

    widget = forms.Textarea(attrs={"rows": 3, "cols": 70, "spellcheck": "false"})


def trial(cluster: Cluster, kind: str, manifest: Mapping[str, Any]) -> None:
    """Store the manifest and undo it. Raises `ManifestErrors` as storing it would."""
    with transaction.atomic():
        apply_object(cluster, manifest, kind=kind, actor="")
        transaction.set_rollback(True)


class ConfigurationForm(forms.ModelForm):  # type: ignore[type-arg]  # Django's class takes no argument at run time
    """A form whose fields are places in our JSON of the object; `places` says which: `a.b` is a field of a field."""

    kind: ClassVar[str]
    places: ClassVar[Mapping[str, str]]

    labels = JSONField(required=False, initial=dict, help_text="{key: value}")
    annotations = JSONField(required=False, initial=dict, help_text="{key: value}")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        body = RENDERERS[self.kind](self.instance) if self.instance.pk else {}
        for field, place in self._all_places():
            value = _get(body, place)
            if value is not None:
                self.initial[field] = rows_of(value) if field == "resource_groups" else value

    def clean(self) -> dict[str, Any]:
        """Tried on the database, unless a field is wrong already."""
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        if not self.errors:
            try:
                trial(self._of("cluster"), self.kind, self.manifest())
            except ManifestErrors as mistakes:
                for error in relocated(self.kind, mistakes).errors:
                    self._add(error)
            except InvalidRequest as mistake:
                self.add_error(None, mistake.message)
        return cleaned

    def manifest(self) -> dict[str, Any]:
        """What the form says, as a manifest."""
        body: dict[str, Any] = {}
        for field, place in self._all_places():
            value = self.cleaned_data.get(field)
            if value is not None:
                _put(body, place, str(value) if field == "fair_weight" else value)
        namespaced = KINDS[self.kind].namespaced
        return manifest_from(self.kind, self._of("name"), self._of("namespace") if namespaced else "", body)

    def _of(self, field: str) -> Any:
        """What names the object is not editable once it is there."""
        return self.cleaned_data[field] if field in self.cleaned_data else getattr(self.instance, field)

    def _all_places(self) -> Iterator[tuple[str, str]]:
        yield from self.places.items()
        yield from (("labels", "labels"), ("annotations", "annotations"))

    def _add(self, error: LocatedError) -> None:
        place = place_in_words(error.path, self.cleaned_data.get("resource_groups") or ())
        message = f"{place}: {error.rule}. {error.remedy}".strip()
        for field, start in self._all_places():
            if error.path == start or error.path.startswith((f"{start}.", f"{start}[")):
                return self.add_error(field, message)
        return self.add_error("name" if error.path == "name" and "name" in self.fields else None, message)


class ClusterQueueForm(ConfigurationForm):
    """A ClusterQueue with its quotas."""

    kind = "ClusterQueue"
    places = {
        "cohort": "cohort",
        "queueing_strategy": "queueing_strategy",
        "namespace_selector": "namespace_selector",
        "stop_policy": "stop_policy",
        "resource_groups": "resource_groups",
        "when_can_borrow": "flavor_fungibility.when_can_borrow",
        "when_can_preempt": "flavor_fungibility.when_can_preempt",
        "preference": "flavor_fungibility.preference",
        "within_cluster_queue": "preemption.within_cluster_queue",
        "reclaim_within_cohort": "preemption.reclaim_within_cohort",
        "borrow_policy": "preemption.borrow_within_cohort.policy",
        "max_priority_threshold": "preemption.borrow_within_cohort.max_priority_threshold",
        "fair_weight": "fair_weight",
        "admission_mode": "admission_mode",
        "admission_checks": "admission_checks",
        "preempt_for_devices": "preempt_for_devices",
        "minimum_run_seconds": "preemption_protection.minimum_run_seconds",
        "cool_down_seconds": "preemption_protection.cool_down_seconds",
    }

    cohort = forms.CharField(required=False)
    queueing_strategy = forms.ChoiceField(
        choices=_choices(vocabulary.QueueingStrategy), initial=vocabulary.QueueingStrategy.BEST_EFFORT_FIFO
    )
    namespace_selector = JSONField(
        required=False, help_text="A label selector; empty selects no namespace, {} selects all."
    )
    stop_policy = forms.ChoiceField(choices=_choices(vocabulary.StopPolicy), initial=vocabulary.StopPolicy.NONE)
    resource_groups = QuotaTableField(
        required=False,
        label="Quotas",
        help_text="As Kubernetes writes amounts: 500m, 10Gi. An empty limit is none.",
    )
    when_can_borrow = forms.ChoiceField(
        choices=_choices(vocabulary.FungibilityPolicy), initial=vocabulary.FungibilityPolicy.MAY_STOP_SEARCH
    )
    when_can_preempt = forms.ChoiceField(
        choices=_choices(vocabulary.FungibilityPolicy), initial=vocabulary.FungibilityPolicy.TRY_NEXT_FLAVOR
    )
    preference = forms.ChoiceField(choices=_choices(vocabulary.FungibilityPreference, empty="Kueue's"), required=False)
    within_cluster_queue = forms.ChoiceField(
        choices=_choices(vocabulary.WithinClusterQueuePolicy), initial=vocabulary.WithinClusterQueuePolicy.NEVER
    )
    reclaim_within_cohort = forms.ChoiceField(
        choices=_choices(vocabulary.ReclaimWithinCohortPolicy), initial=vocabulary.ReclaimWithinCohortPolicy.NEVER
    )
    borrow_policy = forms.ChoiceField(
        choices=_choices(vocabulary.BorrowWithinCohortPolicy),
        initial=vocabulary.BorrowWithinCohortPolicy.NEVER,
        label="Preempt while borrowing",
    )
    max_priority_threshold = forms.IntegerField(required=False)
    fair_weight = forms.DecimalField(initial=1, label="Fair sharing weight")
    admission_mode = forms.ChoiceField(choices=_choices(vocabulary.AdmissionMode, empty="Kueue's"), required=False)
    admission_checks = JSONField(
        required=False, initial=list, help_text='[{"name": ..., "on_flavors": [...]}]; no flavors are all.'
    )
    preempt_for_devices = forms.BooleanField(required=False, help_text="Beyond Kueue.")
    minimum_run_seconds = forms.IntegerField(required=False, help_text="Beyond Kueue: safe from preemption so long.")
    cool_down_seconds = forms.IntegerField(required=False, help_text="Beyond Kueue: between two preemptions.")

    class Meta:
        model = ClusterQueue
        fields = ["cluster", "name"]


class CohortForm(ConfigurationForm):
    """A Cohort with its quotas."""

    kind = "Cohort"
    places = {
        "parent_name": "parent",
        "fair_weight": "fair_weight",
        "resource_groups": "resource_groups",
        "minimum_run_seconds": "preemption_protection.minimum_run_seconds",
        "cool_down_seconds": "preemption_protection.cool_down_seconds",
    }

    parent_name = forms.CharField(required=False)
    fair_weight = forms.DecimalField(initial=1, label="Fair sharing weight")
    resource_groups = QuotaTableField(required=False, label="Quotas of its own")
    minimum_run_seconds = forms.IntegerField(required=False)
    cool_down_seconds = forms.IntegerField(required=False)

    class Meta:
        model = Cohort
        fields = ["cluster", "name"]


class LocalQueueForm(ConfigurationForm):
    """A LocalQueue."""

    kind = "LocalQueue"
    places = {"cluster_queue": "cluster_queue", "stop_policy": "stop_policy", "fair_weight": "fair_weight"}

    cluster_queue = forms.CharField()
    stop_policy = forms.ChoiceField(choices=_choices(vocabulary.StopPolicy), initial=vocabulary.StopPolicy.NONE)
    fair_weight = forms.DecimalField(initial=1, label="Fair sharing weight")

    class Meta:
        model = LocalQueue
        fields = ["cluster", "namespace", "name"]


class ResourceFlavorForm(ConfigurationForm):
    """A ResourceFlavor."""

    kind = "ResourceFlavor"
    places = {
        "node_labels": "node_labels",
        "node_taints": "node_taints",
        "tolerations": "tolerations",
        "topology": "topology",
    }

    node_labels = JSONField(required=False, initial=dict, help_text="{key: value}")
    node_taints = JSONField(required=False, initial=list, help_text='[{"key", "value", "effect"}]')
    tolerations = JSONField(required=False, initial=list, help_text='[{"key", "operator", "value", "effect"}]')
    topology = forms.CharField(required=False)

    class Meta:
        model = ResourceFlavor
        fields = ["cluster", "name"]


class ManifestForm(forms.ModelForm):  # type: ignore[type-arg]  # Django's class takes no argument at run time
    """A small kind, edited as the manifest that it is."""

    kind: ClassVar[str]
    example: ClassVar[str]

    manifest_text = forms.CharField(
        label="Manifest", widget=forms.Textarea(attrs={"rows": 20, "cols": 100, "spellcheck": "false"}), strip=False
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance.pk:
            self.initial["manifest_text"] = yaml.safe_dump(manifest_of(self.instance), sort_keys=False)
        else:
            self.initial["manifest_text"] = self.example

    def clean(self) -> dict[str, Any]:
        """Tried on the database, unless a field is wrong already."""
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        if self.errors:
            return cleaned
        try:
            trial(self._cluster(), self.kind, self.manifest())
        except KueuewebError as mistakes:
            for error in mistakes.errors or [mistakes.message]:
                self.add_error("manifest_text", str(error).removeprefix("document 0, "))
        return cleaned

    def manifest(self) -> dict[str, Any]:
        """The manifest; raises `KueuewebError` for text that is none, and for another object than that on screen."""
        documents = read_documents(self.cleaned_data["manifest_text"])
        if len(documents) != 1:
            raise InvalidRequest(f"There must be one document, not {len(documents)}.")
        manifest = documents[0].content
        metadata = manifest.get("metadata")
        metadata = metadata if isinstance(metadata, Mapping) else {}
        for field in ("name", *(["namespace"] if KINDS[self.kind].namespaced else [])):
            if self.instance.pk and metadata.get(field) != getattr(self.instance, field):
                raise InvalidRequest(f"metadata.{field} must stay {getattr(self.instance, field)}.")
        return manifest

    def _cluster(self) -> Cluster:
        """What an object belongs to is not editable once it is there."""
        given: Cluster | None = self.cleaned_data.get("cluster")
        return given or self.instance.cluster


def _get(body: Mapping[str, Any], place: str) -> Any:
    value: Any = body
    for part in place.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def _put(body: dict[str, Any], place: str, value: Any) -> None:
    *outer, last = place.split(".")
    for part in outer:
        body = body.setdefault(part, {})
    body[last] = value
