"""The declaration of a kind: its names, versions and fields. Manifests, our JSON, forms and the rules' values follow.

A declaration names the row's column, the place in a manifest and the place in our JSON of each field. Reading walks the
document along these places, so that one pass finds every mistake, at the path that the author wrote.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Any, Final

from django.db.models import Model, Q

from kinds.field_types import AnnotationType, FieldType
from scheduling.manifest import FieldReader, MistakeReason, ObjectMeta, ValidationReport, read_metadata, write_metadata
from scheduling.manifest.metadata import read_labels_and_annotations
from scheduling.manifest.syntax import Syntax, dns_label, dns_subdomain

Tree = dict[str, Any]
"""Key -> the field at this key, with its type; the tree below; or None for a field that was dropped since."""

READ_ONLY: Final = frozenset(
    ("uid", "cluster", "name", "namespace", "generation", "created_at", "deletion_requested_at", "conditions",
     "pending", "reserving", "admitted", "capacity", "weighted_share", "usage")
)  # fmt: skip
"""Keys of our JSON that are no fields of the kind."""


@dataclass(frozen=True)
class Place:
    """The path and the type of a field in an older version."""

    path: str
    type: FieldType | None = None


@dataclass(frozen=True)
class Field:
    """A field of a kind."""

    name: str
    """Ours: the row's column."""
    path: str
    """Kubernetes': its place in the newest version. Empty for a field that no manifest has."""
    type: FieldType
    json: str | None = ""
    """Its place in our JSON: `name` unless it says otherwise; None: our JSON does not have it."""
    core: str | None = ""
    """The name of the attribute in the rules; by default that in our JSON. None: the rules do not have it."""
    older: Mapping[str, Place | None] = field(default_factory=dict)
    """Version -> its place in that version, None if that version does not have it."""
    annotation: str = ""
    """The annotation that holds it in a manifest, for a field that Kueue does not have."""
    required: bool = False
    always: bool = False
    """Write the field to manifests even if it has its default."""
    frozen: bool | Callable[[Any, Any], bool] = False
    """Whether the field is immutable, or a function that returns whether a change (old, new) is refused."""
    help: str = ""
    """The meaning of the field, for authors of manifests, users of forms and readers of the REST document."""

    @property
    def json_path(self) -> str:
        return self.json or self.name

    @property
    def read_only(self) -> bool:
        return not self.path and not self.annotation

    def read_annotation(self, text: str) -> Any:
        """Parse the field's annotation. Raises ValueError with the rule for its value."""
        return self._annotated.read_annotation(text)

    def write_annotation(self, value: Any) -> str:
        """Return the annotation for the value."""
        return self._annotated.write_annotation(value)

    @property
    def _annotated(self) -> AnnotationType:
        if not isinstance(self.type, AnnotationType):
            raise TypeError(f"{self.name}: a {type(self.type).__name__} cannot be written as an annotation.")
        return self.type

    def refuses(self, old: Any, new: Any) -> bool:
        """Return whether this change of the value is forbidden."""
        if callable(self.frozen):
            return self.frozen(old, new)
        return self.frozen and bool(old != new)


@dataclass(frozen=True)
class Group:
    """A group of fields that our JSON nests under one key."""

    description: str
    core: type[Any] | None = None
    core_name: str = ""
    sparse: bool = False
    """Our JSON omits unset fields."""


@dataclass(frozen=True)
class KindSpec:
    """The desired state of an object: its identity and the values of its columns."""

    meta: ObjectMeta
    values: Mapping[str, Any]


class Reading:
    """An object that is being read: the values so far, and the path of each in the document."""

    def __init__(self, kind: Kind, top: FieldReader, version: str = "") -> None:
        self.kind = kind
        self.version = version
        self.in_json = not version
        self.name = ""
        self.values: dict[str, Any] = {found.name: found.type.default for found in kind.stored}
        self._top = top
        self._places: dict[str, tuple[FieldReader, str]] = {}

    def walk(self, holder: FieldReader, tree: Tree) -> None:
        """Read the fields of the tree."""
        for key, below in tree.items():
            if below is None:
                if holder.take(key) is not None:
                    holder.warn(key, "has no effect: newer versions no longer have this field")
            elif isinstance(below, dict):
                inner = holder.required_fields(key) if self._must_have(holder, key) else holder.fields(key)
                if inner is not None:
                    self.walk(inner, below)
                    inner.close()
            else:
                self._take(holder, key, *below)

    def error(self, name: str, rule: str, remedy: str = "", reason: MistakeReason = MistakeReason.INVALID) -> None:
        """Report a mistake in a field, at its place in this document."""
        holder, key = self._place(name)
        holder.error(key, rule, remedy, reason)

    def warn(self, name: str, text: str, *, entry: str = "") -> None:
        """Report a warning about a field, or about an entry of it."""
        holder, key = self._place(name)
        holder.warn(f"{key}[{entry}]" if entry else key, text)

    def read_annotations(self, meta: ObjectMeta) -> ObjectMeta:
        """Read the fields that annotations hold. Returns the metadata without these annotations, so that no value
        has two places."""
        annotated = {found.annotation: found for found in self.kind.fields if found.annotation}
        for name in sorted(annotated.keys() & meta.annotations.keys()):
            text = meta.annotations[name]
            if annotated[name].name in self._places:
                continue  # our JSON has a field of its own for it
            try:
                self.values[annotated[name].name] = annotated[name].read_annotation(text)
            except ValueError as mistake:
                prefix = "" if self.in_json else "metadata."
                self._top.report.error(self._top.at(f"{prefix}annotations[{name}]"), text, str(mistake))
        if not annotated.keys() & meta.annotations.keys():
            return meta
        return replace(meta, annotations={key: text for key, text in meta.annotations.items() if key not in annotated})

    def _place(self, name: str) -> tuple[FieldReader, str]:
        """Return the path of a field in this document, whether it is present or not."""
        if name in self._places:
            return self._places[name]
        field_ = next(found for found in self.kind.stored if found.name == name)
        annotated = f"metadata.annotations[{field_.annotation}]" if field_.annotation else ""
        place = field_.older.get(self.version) or Place(field_.path or annotated)
        return self._top, field_.json_path if self.in_json else place.path

    def _must_have(self, holder: FieldReader, key: str) -> bool:
        return not self.in_json and holder is self._top and key == "spec" and self.kind.spec_required

    def _take(self, holder: FieldReader, key: str, found: Field, type_: FieldType) -> None:
        if self.in_json and not found.required and holder.content.get(key) in ("", None, [], type_.default):
            holder.ignore(key)
            return
        self._places[found.name] = (holder, key)
        self.values[found.name] = type_.read(holder, key, self, required=found.required)


@dataclass(frozen=True)
class ManifestKind(ABC):
    """A kind of object in manifests. `read` takes the document and its version."""

    name: str
    versions: tuple[str, ...]
    """apiVersions, the newest first: that one is written."""
    plural: str
    """With hyphens, as in our addresses; Kubernetes writes it without."""
    short_names: tuple[str, ...] = ()
    namespaced: bool = False

    @abstractmethod
    def read(self, top: FieldReader, version: str) -> Any:
        """Read a document."""

    @property
    def words(self) -> tuple[str, ...]:
        return (
            self.name.lower(),
            self.plural.replace("-", ""),
            *self.short_names,
            *(f"{word}s" for word in self.short_names),
        )


def no_check(reading: Reading) -> None:
    """Default check of a kind whose fields do not depend on each other."""


def no_users(cluster: Any, name: str) -> str:
    """Default for a kind whose objects are not referenced."""
    return ""


@dataclass(frozen=True, eq=False)
class Kind(ManifestKind):
    """A configuration kind: one row per object, replaced by each apply."""

    description: str = ""
    model: type[Any] = Model
    fields: tuple[Field, ...] = ()
    groups: Mapping[str, Group] = field(default_factory=dict)
    parts: Mapping[str, str] = field(default_factory=dict)
    """Path in manifests -> the description of the object at this path, for paths without a group in our JSON."""
    name_syntax: Syntax = dns_subdomain
    spec_required: bool = False
    check: Callable[[Reading], None] = no_check
    """The rules that join several fields."""
    complete: Callable[[ObjectMeta], ObjectMeta] = lambda meta: meta
    """The function that adds to the metadata as an API server does."""
    users: Callable[[Any, str], str] = no_users
    """A message that names the users of an object, from the cluster's row and the name; empty if it may be deleted."""
    is_used: Callable[[], Q] | None = None
    """The same as a condition of a query for the rows of the kind; None: nothing ever uses one."""
    core: Callable[[Any, Mapping[str, Any]], Any] | None = None
    """The rules' value of a row, from the row and the fields that the rules have."""
    dropped: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Version -> the fields that later ones do not have: taken with a warning."""
    prefetch: tuple[str, ...] = ()
    mirrored: bool = True
    """Whether a cluster has such objects: in clusters that kueueweb does not schedule, our rows are not edited."""

    @cached_property
    def stored(self) -> tuple[Field, ...]:
        """The fields that a user sets."""
        return tuple(found for found in self.fields if not found.read_only)

    @property
    def columns(self) -> list[str]:
        """The columns that an apply writes; `resource_groups` are rows of their own."""
        return [found.name for found in self.stored if found.name != "resource_groups"]

    def describe_columns(self) -> None:
        """Copy the help of the fields to the row's columns, so that manifests, REST, forms and models have the same
        text."""
        columns = {column.name: column for column in self.model._meta.concrete_fields}
        for found in self.fields:
            if found.name in columns:
                columns[found.name].help_text = found.help

    def read(self, top: FieldReader, version: str) -> KindSpec:
        """Read a manifest of a version such as `v1beta2`."""
        top.ignore("status", *(() if any("spec." in found.path for found in self.fields) else ("spec",)))
        meta = read_metadata(top, namespaced=self.namespaced, name_syntax=self.name_syntax)
        reading = Reading(self, top, version)
        reading.walk(top, _tree(self, version))
        return self._finished(reading, meta)

    def read_json(
        self,
        report: ValidationReport,
        name: str,
        namespace: str,
        body: Mapping[str, Any],
        before: KindSpec | None = None,
    ) -> KindSpec:
        """Read our JSON of the object with this name. Omitted fields get their defaults; fields that our JSON does not
        have keep their values."""
        top = FieldReader(report, "", body)
        top.ignore(*READ_ONLY, *(found.json_path for found in self.fields if found.read_only))
        for key, value in (("name", name), ("namespace", namespace)):
            if body.get(key, value) != value:
                top.error(key, f"must be {value}, as in the address")
        for key, value, syntax in (("name", name, self.name_syntax), ("namespace", namespace, dns_label)):
            if broken := syntax(value) if value or key == "name" else None:
                report.error(key, value, broken)
        reading = Reading(self, top)
        if before is not None:
            reading.values |= {found.name: before.values[found.name] for found in self.stored if found.json is None}
        reading.walk(top, _tree(self, ""))
        spec = self._finished(reading, ObjectMeta(name, namespace, *read_labels_and_annotations(top)))
        top.close()
        return spec

    def _finished(self, reading: Reading, meta: ObjectMeta) -> KindSpec:
        reading.name = meta.name
        meta = reading.read_annotations(meta)
        self.check(reading)
        return KindSpec(self.complete(meta), reading.values)

    def write(self, spec: KindSpec, api_version: str = "") -> dict[str, Any]:
        """Write the manifest of a spec, in the newest version unless another one is named; defaults are left out."""
        api_version = api_version or self.versions[0]
        version = api_version.rpartition("/")[2]
        annotations = dict(spec.meta.annotations)
        manifest: dict[str, Any] = {"apiVersion": api_version, "kind": self.name, "metadata": {}}
        if any(found.path.startswith("spec.") for found in self.fields):
            manifest["spec"] = {}
        for found in self.stored:
            value = spec.values[found.name]
            if value == found.type.default and not found.always:
                continue
            if found.annotation:
                annotations[found.annotation] = found.write_annotation(value)
                continue
            place = found.older.get(version, Place(found.path))
            if place is not None:  # a field that the version lacks is left out
                _put(manifest, place.path, (place.type or found.type).write(value))
        manifest["metadata"] = write_metadata(replace(spec.meta, annotations=annotations))
        return manifest

    def spec_of(self, row: Any) -> KindSpec:
        """Return the spec of a row. It equals the spec of the manifest from which the row would be created."""
        meta = ObjectMeta(row.name, row.namespace if self.namespaced else "", row.labels, row.annotations)
        return KindSpec(meta, {found.name: found.type.of_row(row, found.name) for found in self.stored})

    def to_json(self, row: Any) -> dict[str, Any]:
        """Return a row as our JSON."""
        body: dict[str, Any] = {
            "uid": row.uid,
            "name": row.name,
            "labels": row.labels,
            "annotations": row.annotations,
            "generation": row.generation,
            "created_at": row.created_at,
            "deletion_requested_at": row.deletion_requested_at,
        }
        if self.namespaced:
            body["namespace"] = row.namespace
        for found in self.fields:
            if found.json is None:
                continue
            value = found.type.to_json(found.type.of_row(row, found.name))
            outer = found.json_path.rpartition(".")[0]
            if value is None and outer and self.groups[outer].sparse:
                body.setdefault(outer, {})
            else:
                _put(body, found.json_path, value)
        return body

    def core_value(self, row: Any) -> Any:
        """Return a row as the value that the scheduling rules use."""
        if self.core is None:
            raise TypeError(f"the scheduling model has no kind {self.name}")
        known: dict[str, Any] = {}
        for found in self.fields:
            if found.core is None:
                continue
            value = found.type.core(found.type.of_row(row, found.name))
            if value is not None:
                outer, _, last = found.json_path.rpartition(".")
                _put(known, f"{outer}.{found.core or last}" if outer else found.core or last, value)
        return self.core(row, self._in_core_groups(known))

    def _in_core_groups(self, known: dict[str, Any], outer: str = "") -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in known.items():
            group = self.groups.get(f"{outer}{key}")
            if group is not None and group.core is not None:
                found[group.core_name or key] = group.core(**self._in_core_groups(value, f"{outer}{key}."))
            else:
                found[key] = value
        return found

    def field_at(self, json_path: str) -> Field | None:
        """Return the field at a path in our JSON."""
        for found in self.fields:
            start = found.json_path
            if found.json is not None and (json_path == start or json_path.startswith((f"{start}.", f"{start}["))):
                return found
        return None


@cache
def _tree(kind: Kind, version: str) -> Tree:
    """Return the tree of fields by path in a version; the version "" means our JSON."""
    tree: Tree = {}
    for found in kind.stored:
        place: Place | None = Place(found.path)
        if not version:
            place = None if found.json is None else Place(found.json_path)
        elif version in found.older:
            place = found.older[version]
        if place is not None and place.path:
            _put(tree, place.path, (found, place.type or found.type))
    for path in kind.dropped.get(version, ()):
        _put(tree, path, None)
    return tree


def _put(tree: dict[str, Any], path: str, value: Any) -> None:
    *outer, last = path.split(".")
    for key in outer:
        tree = tree.setdefault(key, {})
    tree[last] = value
