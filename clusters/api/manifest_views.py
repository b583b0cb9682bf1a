"""Manifests in and out over REST: `manage.py apply` and `manage.py get` with the user's permissions."""

from collections.abc import Mapping
from typing import IO, Any, cast

import orjson
from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import serializers, status
from rest_framework.exceptions import ParseError, ValidationError
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.settings import api_settings

from accounts.api.flags import flag
from accounts.api.idempotency import IDEMPOTENCY_KEY, done_once
from accounts.api.if_match import if_match
from accounts.api.scope import DRY_RUN, ClusterView
from accounts.services.apply_result import Action
from accounts.services.precondition import etag
from clusters.manifests import (
    ApplyResult,
    apply_manifests,
    delete_manifest,
    get_manifests,
    has_version,
    kind_named,
    to_yaml,
)
from foundation.exceptions import InvalidRequest, PreconditionFailed
from queues.api.filters import query_text
from queues.manifests.documents import MAX_BYTES
from queues.services.visibility import Reader

_YAML = "application/yaml"
_JSON = "application/json"
_OUT = {(200, _JSON): OpenApiTypes.OBJECT, (200, _YAML): OpenApiTypes.STR}
_FORMATS = ("json", "yaml")
_FORMAT = OpenApiParameter(
    "format",
    str,
    enum=list(_FORMATS),
    description=("The format of the answer; by default that of the Accept header, else JSON."),
)


class _TextParser(BaseParser):
    """Hands over the text: reading it is the services' business. One byte too many is enough for them to refuse it."""

    def parse(
        self, stream: IO[bytes], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> Any:
        """Return the bytes; raises ParseError for null, which contains no document."""
        body = stream.read(MAX_BYTES + 1)
        if body.strip() == b"null":
            raise ParseError("The body is null. Send an object, a List or several documents.")
        return body


class _YAMLParser(_TextParser):
    media_type = _YAML


class _OldYAMLParser(_TextParser):
    media_type = "application/x-yaml"


class _TextYAMLParser(_TextParser):
    media_type = "text/yaml"


class _JSONParser(_TextParser):
    """JSON is YAML."""

    media_type = "application/json"


class YAMLRenderer(BaseRenderer):
    """For clients that accept YAML only; manifests are YAML already, so this writes errors."""

    media_type = _YAML
    format = "yaml"

    def render(
        self, data: Any, accepted_media_type: str | None = None, renderer_context: Mapping[str, Any] | None = None
    ) -> bytes:
        """Return the bytes."""
        return to_yaml([orjson.loads(orjson.dumps(data, default=str))]).encode()


class AppliedObjectSerializer(serializers.Serializer[Any]):
    """The result for one object of an apply."""

    kind = serializers.CharField()
    namespace = serializers.CharField(allow_blank=True, help_text="Empty for kinds without a namespace.")
    name = serializers.CharField()
    outcome = serializers.ChoiceField([action.value for action in Action])


class ApplyWarningSerializer(serializers.Serializer[Any]):
    """A warning about an accepted field."""

    kind = serializers.CharField()
    namespace = serializers.CharField(allow_blank=True)
    name = serializers.CharField()
    message = serializers.CharField()


class SkippedDocumentSerializer(serializers.Serializer[Any]):
    """A document of an unsupported kind that was skipped."""

    document = serializers.IntegerField(help_text="The index of the document in the request, from 0.")
    kind = serializers.CharField(allow_blank=True)
    message = serializers.CharField()


class ApplyResultSerializer(serializers.Serializer[Any]):
    """The result of an apply, or of its dry run."""

    dry_run = serializers.BooleanField()
    objects = AppliedObjectSerializer(many=True)
    warnings = ApplyWarningSerializer(many=True)
    skipped = SkippedDocumentSerializer(many=True)


class ManifestsView(ClusterView):
    """`manifests/`."""

    serializer_class = ApplyResultSerializer
    writes_what_is_mirrored = False  # apply_manifests checks which of its kinds are allowed
    parser_classes = (_YAMLParser, _OldYAMLParser, _TextYAMLParser, _JSONParser)

    @extend_schema(
        parameters=[
            OpenApiParameter("dry_run", bool, description="Dry run: report the result, but store nothing."),
            OpenApiParameter("set", str, description="A name for the applied objects."),
            OpenApiParameter("prune", bool, description="Remove objects of the set that are no longer applied."),
            OpenApiParameter("force", bool, description="With `prune`: also end workloads that hold quota."),
            OpenApiParameter("skip_unsupported", bool, description="Skip documents of unsupported kinds."),
            IDEMPOTENCY_KEY,
        ],
        request={_YAML: OpenApiTypes.STR, _JSON: OpenApiTypes.OBJECT},
        responses={200: ApplyResultSerializer},
    )
    @done_once
    def post(self, request: Request) -> Response:
        """Apply manifests of any kinds, all or none. Each manifest replaces its object."""
        result = apply_manifests(
            self.cluster,
            cast("bytes", request.data or b""),  # a request without a body parses as an empty form
            user=request.user,
            dry_run=flag(request, DRY_RUN),
            applied_set=query_text(request.query_params, "set"),
            prune=flag(request, "prune"),
            force=flag(request, "force"),
            skip_unsupported=flag(request, "skip_unsupported"),
        )
        return Response(result_json(result))


class MarkedSerializer(serializers.Serializer[Any]):
    """An object that is marked for deletion."""

    message = serializers.CharField(help_text="The objects that still use it.")


_IF_MATCH = OpenApiParameter(
    "If-Match",
    str,
    OpenApiParameter.HEADER,
    description=(
        "For configuration objects: the ETag or the resourceVersion in quotes, as it was read; 412 if the "
        "object has changed."
    ),
)
_DELETED = {
    204: None,
    202: MarkedSerializer,
    412: OpenApiResponse(
        OpenApiTypes.OBJECT, "The object has changed since it was read; `current` is the present manifest."
    ),
}


class _ManifestsOutView(ClusterView):
    serializer_class = ApplyResultSerializer
    writes_what_is_mirrored = False  # delete_manifest checks which of its kinds are allowed
    renderer_classes = (*cast("list[type[BaseRenderer]]", api_settings.DEFAULT_RENDERER_CLASSES), YAMLRenderer)

    def manifests(self, kind: str, namespace: str = "", name: str = "") -> HttpResponse:
        """Return the objects of the kind (and of that name) that the user may see, as JSON or as YAML."""
        found = kind_named(kind)
        if found.namespaced and name and not namespace:
            raise InvalidRequest(f"A {found.name} has a namespace: use {kind}/NAMESPACE/{name}/.")
        if not found.namespaced or namespace:
            self.require("view", found.name, namespace, name)
        visible = self.access.visible_namespaces()
        manifests = get_manifests(self.cluster, kind, name or None, namespace or None, visible=visible)
        if name and not manifests:
            raise self.missing(found.name, *filter(None, (namespace, name)))
        if found.namespaced:
            reader = Reader(self.access, self.cluster)
            manifests = [reader.manifest(manifest) for manifest in manifests]
        tag = {"ETag": etag(manifests[0]["metadata"]["resourceVersion"])} if name and has_version(found) else {}
        if _wants_json(self.request):
            body = manifests[0] if name else {"apiVersion": "v1", "kind": "List", "items": manifests}
            return HttpResponse(orjson.dumps(body, default=str), content_type=_JSON, headers=tag)
        return HttpResponse(to_yaml(manifests), content_type=f"{_YAML}; charset=utf-8", headers=tag)

    def remove(self, kind: str, namespace: str = "", name: str = "") -> Response:
        """Answer with 204 if the object was deleted, or with 202 and the objects that still use it: it is deleted once
        they no longer do."""
        found = kind_named(kind)
        if found.namespaced != bool(namespace):
            rule = f"ask for {kind}/NAMESPACE/{name}/" if found.namespaced else f"ask for {kind}/{name}/"
            raise InvalidRequest(f"A {found.name} has {'a' if found.namespaced else 'no'} namespace: {rule}.")
        if found.namespaced and not self.access.may_in_tree(found.name):
            self.require("view", found.name, namespace, name)
        precondition = if_match(self.request)
        try:
            waiting = delete_manifest(
                self.cluster, found, namespace, name, access=self.access, precondition=precondition
            )
        except PreconditionFailed as error:
            error.current = next(iter(get_manifests(self.cluster, kind, name, namespace or None)), None)
            raise
        if not waiting:
            return Response(status=status.HTTP_204_NO_CONTENT)
        return Response({"message": waiting}, status.HTTP_202_ACCEPTED)


class KindManifestsView(_ManifestsOutView):
    """`manifests/{kind}/`."""

    @extend_schema(operation_id="manifests_list", parameters=[_FORMAT], responses=_OUT)
    def get(self, request: Request, kind: str) -> HttpResponse:
        """Return all objects of a kind that the user may see, as manifests that can be applied again unchanged."""
        return self.manifests(kind)


class ManifestView(_ManifestsOutView):
    """`manifests/{kind}/{name}/`."""

    @extend_schema(parameters=[_FORMAT], responses=_OUT)
    def get(self, request: Request, kind: str, name: str) -> HttpResponse:
        """Return an object without a namespace, with its status, as a manifest that can be applied again unchanged."""
        return self.manifests(kind, name=name)

    @extend_schema(operation_id="manifests_destroy", parameters=[_IF_MATCH], responses=_DELETED)
    def delete(self, request: Request, kind: str, name: str) -> Response:
        """Delete an object without a namespace. The Configuration, which has no name, is called `default`."""
        return self.remove(kind, name=name)


class NamespacedManifestView(_ManifestsOutView):
    """`manifests/{kind}/{namespace}/{name}/`."""

    @extend_schema(operation_id="manifests_retrieve_namespaced", parameters=[_FORMAT], responses=_OUT)
    def get(self, request: Request, kind: str, namespace: str, name: str) -> HttpResponse:
        """Return an object of a namespace, with its status, as a manifest that can be applied again unchanged."""
        return self.manifests(kind, namespace, name)

    @extend_schema(operation_id="manifests_destroy_namespaced", parameters=[_IF_MATCH], responses=_DELETED)
    def delete(self, request: Request, kind: str, namespace: str, name: str) -> Response:
        """Delete an object of a namespace: a job with its workloads, a queue, or any other object."""
        return self.remove(kind, namespace, name)


def _wants_json(request: Request) -> bool:
    """Return whether the answer is JSON: it is YAML for a client that requests it, by `format` or by the Accept
    header."""
    wanted = request.query_params.get("format", "")
    if wanted:
        if wanted not in _FORMATS:
            raise ValidationError(
                {"format": f'Unsupported value "{wanted}": supported values are {", ".join(_FORMATS)}.'}
            )
        return wanted == "json"
    accepts = request.headers.get("Accept", "")
    return _YAML not in accepts or _JSON in accepts


def result_json(result: ApplyResult) -> dict[str, Any]:
    """Return the result of an apply in the shape of `ApplyResultSerializer`."""
    keys = [{"kind": applied.kind, "namespace": applied.namespace, "name": applied.name} for applied in result.objects]
    return {
        "dry_run": result.dry_run,
        "objects": [key | {"outcome": applied.action} for key, applied in zip(keys, result.objects, strict=True)],
        "skipped": [
            {
                "document": mistake.document,
                "kind": str(mistake.value or ""),
                "message": f"{mistake.path}: {mistake.rule}",
            }
            for mistake in result.skipped
        ],
        "warnings": [
            key | {"message": warning}
            for key, applied in zip(keys, result.objects, strict=True)
            for warning in applied.warnings
        ],
    }
