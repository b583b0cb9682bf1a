"""Forms of configuration objects, built from the declarations of their kinds.

Before its content is stored, the service that stores it tries it on the database. So every rule of Kueue applies,
including immutable fields, and errors appear at their fields.
"""

import json
from collections.abc import Iterator
from functools import singledispatch
from typing import Any, ClassVar, Final

from django import forms
from django.db import transaction

from accounts.admin import AnyModelForm
from accounts.services.precondition import Precondition
from foundation.exceptions import InvalidRequest, ManifestErrors, MirroredFromCluster, PreconditionFailed
from kinds.declaration import Field, Kind
from kinds.field_types import (
    Boolean,
    Choice,
    FieldType,
    Integer,
    Moment,
    Quantities,
    Structure,
    Text,
    TextMap,
    Weight,
)
from queues.admin.quota_table import QuotaTableField, place_in_words, rows_of
from queues.kinds.admission_checks import AdmissionChecks
from queues.kinds.multifactor import MultifactorWeights
from queues.kinds.node_quotas import NodeQuotas
from queues.kinds.quotas import ResourceGroups
from queues.kinds.user_limits import LimitsByUser
from queues.models import ResourceFlavor
from queues.services.configuration import apply_json
from scheduling.manifest import LocatedError

_AMOUNTS: Final = (
    "Write amounts as in Kubernetes: 500m, 10Gi; GPU memory in MiB, GPU cores in percent. An empty "
    "limit means no limit."
)


class JSONField(forms.JSONField):
    """JSON in a text of a few lines."""

    widget = forms.Textarea(attrs={"rows": 3, "cols": 70, "spellcheck": "false"})


@singledispatch
def _form_field(type_: FieldType, **options: Any) -> forms.Field:
    raise TypeError(f"a {type(type_).__name__} has no form field yet: register one here")


@_form_field.register
def _(type_: Text, **options: Any) -> forms.Field:
    return forms.CharField(**options)


@_form_field.register
def _(type_: Choice, **options: Any) -> forms.Field:
    empty = [] if type_.initial else [("", "Kueue's")]
    words = [(word.value, word.value) for word in type_.enum]
    return forms.ChoiceField(choices=[*empty, *words], initial=type_.default, **options)


@_form_field.register
def _(type_: Integer, **options: Any) -> forms.Field:
    return forms.IntegerField(**options)


@_form_field.register
def _(type_: Moment, **options: Any) -> forms.Field:
    return forms.CharField(**{**options, "help_text": f"{options.get('help_text', '')} Like 2026-01-31T12:00:00Z."})


@_form_field.register
def _(type_: Boolean, **options: Any) -> forms.Field:
    return forms.BooleanField(**options)


@_form_field.register
def _(type_: Weight, **options: Any) -> forms.Field:
    return forms.DecimalField(initial=type_.default, **options)


@_form_field.register(TextMap)
@_form_field.register(Quantities)
@_form_field.register(Structure)
@_form_field.register(AdmissionChecks)
@_form_field.register(NodeQuotas)
@_form_field.register(MultifactorWeights)
@_form_field.register(LimitsByUser)
def _(type_: FieldType, **options: Any) -> forms.Field:
    return JSONField(initial=type_.default, **options)


@_form_field.register
def _(type_: ResourceGroups, **options: Any) -> forms.Field:
    return QuotaTableField(
        label="Quotas",
        **{
            **options,
            "help_text": _AMOUNTS,
        },
    )


class ConfigurationForm(AnyModelForm):
    """A form with the fields of a kind's declaration. Their names are paths in the object's JSON."""

    kind: ClassVar[Kind]

    labels = JSONField(required=False, initial=dict, help_text="{key: value}")
    annotations = JSONField(required=False, initial=dict, help_text="{key: value}")
    generation = forms.IntegerField(required=False, widget=forms.HiddenInput)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        body = self.kind.to_json(self.instance) if self.instance.pk else {}
        self.initial["generation"] = self.instance.generation if self.instance.pk else None
        quotas = self.fields.get("resource_groups")
        if quotas is not None:
            flavors = ResourceFlavor.objects.order_by("name").values_list("name", flat=True)
            here = flavors.filter(cluster=self.instance.cluster_id) if self.instance.pk else flavors
            quotas.widget.flavors = list(dict.fromkeys(here))
        for name, place in self._places():
            value = _get(body, place)
            if value is not None:
                self.initial[name] = rows_of(value) if name == "resource_groups" else value

    def clean(self) -> dict[str, Any]:
        """Check the values, and try the change on the database unless a field is already wrong."""
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        if not self.errors:
            if self.instance.pk:  # locked to the end of the request, so that the validated values can be stored
                self.kind.model.objects.select_for_update().get(pk=self.instance.pk)
            try:
                with transaction.atomic():
                    self.apply(actor="")
                    transaction.set_rollback(True)
            except PreconditionFailed:
                self.add_error(None, self._changed_meanwhile())
            except ManifestErrors as mistakes:
                for error in mistakes.errors:
                    self._add(error)
            except (InvalidRequest, MirroredFromCluster) as refusal:
                self.add_error(None, refusal.message)
        return cleaned

    def apply(self, *, actor: str) -> Any:
        """Store the form's values by the service. Raises `ManifestErrors`."""
        body: dict[str, Any] = {}
        for name, place in self._places():
            value = self.cleaned_data.get(name)
            if value is not None:
                _put(body, place, str(value) if name == "fair_sharing_weight" else value)
        namespace = self._of("namespace") if self.kind.namespaced else ""
        generation = self.cleaned_data.get("generation")
        return apply_json(
            self._of("cluster"),
            self.kind,
            body,
            name=self._of("name"),
            namespace=namespace,
            actor=actor,
            precondition=None if generation is None else Precondition(frozenset({str(generation)}), "this page"),
        )

    def _changed_meanwhile(self) -> str:
        """Return a message about the edits since the page was opened: their users, and the differences."""
        stored = self.kind.to_json(self.instance)
        differences = []
        for name, place in self._places():
            there, here = _get(stored, place), self.cleaned_data.get(name)
            if name == "fair_sharing_weight":
                here = None if here is None else f"{here.normalize():f}"
            if (there or None) != (here or None):
                label = self.fields[name].label or name.replace("_", " ").capitalize()
                differences.append(f"{label} is {json.dumps(there)} now and {json.dumps(here)} on this page")
        by_whom = self.instance.changed_by or "Another user"
        return (
            f"{by_whom} changed {self.instance} after this page was opened; nothing was stored. "
            f"{'; '.join(differences) or 'The object now equals this page'}. Reload the page, and make your change "
            "there."
        )

    def _of(self, name: str) -> Any:
        """Return a field that identifies the object, read-only once it exists."""
        return self.cleaned_data[name] if name in self.cleaned_data else getattr(self.instance, name)

    def _places(self) -> Iterator[tuple[str, str]]:
        yield from ((found.name, found.json_path) for found in editable_fields(self.kind))
        yield from (("labels", "labels"), ("annotations", "annotations"))

    def _add(self, error: LocatedError) -> None:
        place = place_in_words(error.path, self.cleaned_data.get("resource_groups") or ())
        message = f"{place}: {error.rule}. {error.remedy}".strip()
        found = self.kind.field_at(error.path)
        name = found.name if found else error.path.partition("[")[0].partition(".")[0]
        self.add_error(name if name in self.fields else None, message)


def editable_fields(kind: Kind) -> list[Field]:
    """Return the fields of a kind that a form shows."""
    return [found for found in kind.stored if found.json is not None]


def named_by(kind: Kind) -> list[str]:
    """Return the columns that name an object of a kind."""
    return ["cluster", *(["namespace"] if kind.namespaced else []), "name"]


def form_of(kind: Kind) -> type[ConfigurationForm]:
    """Return the form of a kind."""
    meta = type("Meta", (), {"model": kind.model, "fields": named_by(kind)})
    fields = {
        found.name: _form_field(
            found.type,
            required=found.required,
            help_text=found.help,
            **({} if isinstance(found.type, ResourceGroups) else {"label": _label(found)}),
        )
        for found in editable_fields(kind)
    }
    return type(f"{kind.name}Form", (ConfigurationForm,), {"kind": kind, "Meta": meta, **fields})


def fieldsets_of(kind: Kind) -> list[tuple[str | None, dict[str, Any]]]:
    """Return the sections of a kind's page: fields that the JSON groups are shown together."""
    sections: dict[str, list[str]] = {}
    for found in editable_fields(kind):
        group, dot, _ = found.json_path.partition(".")
        sections.setdefault(group if dot else "", []).append(found.name)
    return [
        (None, {"fields": [*named_by(kind), *sections.pop("", []), "generation"]}),
        *((group.replace("_", " ").capitalize(), {"fields": names}) for group, names in sections.items()),
        ("Metadata", {"classes": ("collapse",), "fields": ["labels", "annotations"]}),
    ]


def _label(found: Field) -> str:
    return found.json_path.rpartition(".")[2].replace("_", " ").capitalize()


def _get(body: Any, place: str) -> Any:
    value: Any = body
    for part in place.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value


def _put(body: dict[str, Any], place: str, value: Any) -> None:
    *outer, last = place.split(".")
    for part in outer:
        body = body.setdefault(part, {})
    body[last] = value
