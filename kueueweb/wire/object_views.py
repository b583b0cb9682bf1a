"""Views of objects: one, or a list of them, as JSON, as metadata alone or as a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from django.http import HttpResponse, QueryDict
from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api.warning_header import warning_header
from kueueweb.wire import tables
from kueueweb.wire.base import WireView, accepted
from kueueweb.wire.discovery import verbs_of
from kueueweb.wire.encodings.protobuf import ProtobufParser
from kueueweb.wire.object_reading import ObjectReader, Page, Selection
from kueueweb.wire.patches import PARSERS, change_of, is_apply
from kueueweb.wire.refusals import Refusal, forbidden, not_found
from kueueweb.wire.resources import JsonObject, Resource
from kueueweb.wire.rights import allows, reads
from kueueweb.wire.watches import (
    CURSOR_HEADER,
    START,
    WireWatch,
    changes_since,
    question,
    remember,
    seconds_of,
    wait_for,
)
from kueueweb.wire.writing import ObjectWriter, Written
from queues.api.filters import query_text

_META: Final = "meta.k8s.io"
_FORMS: Final = ("Table", "PartialObjectMetadata", "PartialObjectMetadataList")
_INCLUDES: Final = ("None", "Metadata", "Object")
_MAX_MANAGER: Final = 128


class ResourceView(WireView):
    """A view of one resource in one version."""

    resource: ClassVar[Resource]
    version: ClassVar[str]

    def reader(self) -> ObjectReader:
        """Reads with the rights of the request."""
        return ObjectReader(self.reach, self.resource, self.version)

    def selection(self, namespace: str = "", name: str = "", verb: str = "") -> Selection:
        """Return the objects of the request. Raises Refusal (403) in a namespace that the user may not read."""
        if not reads(self.access, self.resource, namespace):
            raise self.forbidden(verb or ("get" if name else "list"), namespace, name)
        query = self.request.query_params
        return Selection(namespace, name, query_text(query, "labelSelector"), query_text(query, "fieldSelector"))

    def forbidden(self, verb: str, namespace: str, name: str = "") -> Refusal:
        """Return the refusal of a verb. It is the same for a missing namespace."""
        resource = self.resource
        return forbidden(
            resource.qualified, verb, resource.group, resource.plural, self.access.username, namespace, name
        )

    def not_found(self, name: str) -> Refusal:
        """Return the refusal for a name without an object, or with one that the user may not see."""
        return not_found(self.resource.qualified, self.resource.group, self.resource.plural, name)

    @property
    def form(self) -> str:
        """The form that the client prefers: Table, PartialObjectMetadata ...; empty for the objects themselves."""
        for form in accepted(self.request):
            if "as" not in form:
                return ""
            if form.get("g") == _META and form.get("v") == "v1" and form["as"] in _FORMS:
                return form["as"]
        return ""

    def as_table(self, items: list[JsonObject], metadata: Mapping[str, Any]) -> dict[str, Any]:
        """Return the objects as a table; each row includes the part of its object that the client wants."""
        include = query_text(self.request.query_params, "includeObject") or "Metadata"
        if include not in _INCLUDES:
            raise Refusal(400, f'includeObject: Unsupported value: "{include}": use one of {", ".join(_INCLUDES)}')
        columns = self.resource.columns(self.version)
        return tables.table(columns, items, metadata, timezone.now(), include=include)

    def refuse_observed(self) -> None:
        """Raise Refusal (405) where only the cluster or the scheduler writes."""
        if self.resource.is_observed:
            raise Refusal(405, f"{self.resource.qualified} are written by the cluster and by the scheduler only")

    def writer(self, verb: str, namespace: str, name: str = "") -> ObjectWriter:
        """Return a writer with the rights of the request. Raises Refusal (403) if the request lacks the right."""
        self.refuse_observed()
        if not allows(self.access, self.resource, verb, namespace):
            raise self.forbidden(verb, namespace, name)
        options = self.request.data if self.request.method == "DELETE" else {}
        asked = options.get("dryRun") if isinstance(options, Mapping) else None
        dry_run = [*self.request.query_params.getlist("dryRun"), *(asked if isinstance(asked, list) else ())]
        if set(dry_run) - {"All"}:
            raise Refusal(400, "dryRun: Unsupported value: supported values: All")
        return ObjectWriter(self.reader(), self.resource, self.version, self.request.user, dry_run=bool(dry_run))

    def written(self, done: Written, code: int = 200) -> Response:
        """Return the present object, with warnings as kubectl shows them."""
        return Response(done.item, code, headers=warning_header(done.warnings))


class ListView(ResourceView):
    """All objects of a resource, or those of a namespace."""

    def get(self, request: Request, namespace: str = "") -> HttpResponse:
        """List the objects that the user may see; with `watch`, stream their changes."""
        query = request.query_params
        if flag(query_text(query, "watch"), "watch"):
            return self._watch(self.selection(namespace, verb="watch"))
        selection, reader = self.selection(namespace), self.reader()
        token, limit = query_text(query, "continue"), number(query_text(query, "limit"), "limit")
        page = reader.page(selection, limit, token)
        if not token:
            keys = reader.known(selection) if page.following else page.keys
            user = self.request.user.pk or 0
            remember(user, self._question(reader, selection), str(page.version), page.version, keys)
        return Response(self._body(page, self._metadata(page)))

    def post(self, request: Request, namespace: str = "") -> Response:
        """Create an object."""
        self.refuse_observed()
        if self.resource.namespaced and not namespace:
            raise Refusal(405, "a namespaced object is created at the address of its namespace")
        return self.written(self.writer("create", namespace).create(request.data, namespace), 201)

    def delete(self, request: Request, namespace: str = "") -> HttpResponse:
        """Delete the selected objects, and answer with their last state."""
        self.refuse_observed()
        if "deletecollection" not in verbs_of(self.resource):
            raise Refusal(405, f"{self.resource.qualified} are deleted one at a time")
        if self.resource.namespaced and not namespace:
            raise Refusal(405, "namespaced objects are deleted at the address of their namespace")
        query, reader = self.request.query_params, self.reader()
        selection, writer = (
            self.selection(namespace, verb="deletecollection"),
            self.writer("deletecollection", namespace),
        )
        page = reader.page(selection, number(query_text(query, "limit"), "limit"), query_text(query, "continue"))
        writer.delete_all(selection, page, request.data)
        return Response(self._body(page, self._metadata(page)))

    def _question(self, reader: ObjectReader, selection: Selection) -> str:
        return question(self.request.user.pk or 0, reader, self.resource, selection)

    def _watch(self, selection: Selection) -> HttpResponse:
        query, reader = self.request.query_params, self.reader()
        watch = WireWatch(
            user=self.request.user.pk or 0,
            asked=self._question(reader, selection),
            cluster=reader.cluster.pk,
            kind=self.resource.kind,
            api_version=self.resource.api_version(self.version),
            version=query_text(query, "resourceVersion"),
            seconds=seconds_of(query_text(query, "timeoutSeconds")),
            bookmarks=flag(query_text(query, "allowWatchBookmarks"), "allowWatchBookmarks"),
            initial_events=flag(query_text(query, "sendInitialEvents"), "sendInitialEvents"),
            form=self.form,
        )
        cursor = self.request.headers.get(CURSOR_HEADER)
        if cursor is None:
            return wait_for(watch)
        if cursor != START and not cursor.isdecimal():
            raise Refusal(400, f"{CURSOR_HEADER}: Invalid value: {cursor!r}")
        return Response(changes_since(reader, selection, watch, cursor))

    @staticmethod
    def _metadata(page: Page) -> dict[str, str]:
        found = {"resourceVersion": str(page.version)}
        return {**found, "continue": page.following} if page.following else found

    def _body(self, page: Page, metadata: Mapping[str, str]) -> dict[str, Any]:
        if self.form == "Table":
            return self.as_table(page.items, metadata)
        if self.form:
            items = [tables.partial(item) for item in page.items]
            kind = "PartialObjectMetadataList"
            return {"kind": kind, "apiVersion": f"{_META}/v1", "metadata": dict(metadata), "items": items}
        return {
            "kind": f"{self.resource.kind}List",
            "apiVersion": self.resource.api_version(self.version),
            "metadata": dict(metadata),
            "items": page.items,
        }


class StatusView(ResourceView):
    """One object at `/status`, which is the scheduler's to write."""

    def get(self, request: Request, name: str, namespace: str = "") -> Response:
        """Return the object."""
        item = self.reader().one(self.selection(namespace, name))
        if item is None:
            raise self.not_found(name)
        if self.form == "Table":
            return Response(self.as_table([item], {"resourceVersion": item["metadata"]["resourceVersion"]}))
        return Response(tables.partial(item) if self.form else item)


class ObjectView(StatusView):
    """Return one object."""

    parser_classes = (*PARSERS, ProtobufParser)

    def put(self, request: Request, name: str, namespace: str = "") -> Response:
        """Replace the object."""
        return self.written(self.writer("update", namespace, name).replace(request.data, namespace, name))

    def patch(self, request: Request, name: str, namespace: str = "") -> Response:
        """Change the object by a patch, or create it by a server-side apply."""
        writer = self.writer("patch", namespace, name)
        if not is_apply(request):
            return self.written(writer.patch(change_of(request, self.resource), namespace, name))
        query = request.query_params
        done = writer.apply(
            request.data, namespace, name, manager=_manager(query), force=flag(query_text(query, "force"), "force")
        )
        return self.written(done, 201 if done.created else 200)

    def delete(self, request: Request, name: str, namespace: str = "") -> Response:
        """Delete the object. It is answered while something holds it."""
        done = self.writer("delete", namespace, name).delete(request.data, namespace, name)
        if done.item is not None:
            return self.written(done)
        details = {"name": name, "group": self.resource.group, "kind": self.resource.plural}
        return Response({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})


def _manager(query: QueryDict) -> str:
    """Return the name of the client that applies. Raises Refusal (422) without one that Kubernetes takes."""
    manager = query_text(query, "fieldManager")
    if not manager:
        raise Refusal(422, "fieldManager: Required value: is required for apply patch")
    if len(manager) > _MAX_MANAGER or not manager.isprintable():
        raise Refusal(422, f"fieldManager: Invalid value: must be at most {_MAX_MANAGER} printable characters")
    return manager


def flag(text: str, parameter: str) -> bool:
    """Return a boolean parameter; False without a text. Raises Refusal (400)."""
    if text.lower() in ("", "0", "f", "false"):
        return False
    if text.lower() in ("1", "t", "true"):
        return True
    raise Refusal(400, f'{parameter}: Invalid value: "{text}": must be true or false')


def number(text: str, parameter: str) -> int:
    """Return a parameter that is a whole number; 0 without a text. Raises Refusal (400)."""
    if not text:
        return 0
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise Refusal(400, f'{parameter}: Invalid value: "{text}": must be a whole number')
    return int(text)
