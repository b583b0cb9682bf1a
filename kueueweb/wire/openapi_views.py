"""OpenAPI of the served resources: the fields that `kubectl explain` shows, and that the server validates."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from rest_framework.request import Request
from rest_framework.response import Response

from kinds.openapi import anything, manifest_schema
from kueueweb.wire import definitions
from kueueweb.wire.base import WireView, accepted
from kueueweb.wire.encodings.swagger_protobuf import CONTENT_TYPE, MEDIA_TYPE, swagger_in_protobuf
from kueueweb.wire.refusals import Refusal, not_found
from kueueweb.wire.resources import Resource, groups
from queues.api.filters import query_text
from queues.kinds import KINDS


class SwaggerView(WireView):
    """`/openapi/v2`, which Terraform's provider and Argo CD read."""

    def get(self, request: Request) -> HttpResponseBase:
        """Return the document as JSON, or in protobuf to clients that accept no JSON."""
        if accepted(request):
            return Response(definitions.swagger())
        if MEDIA_TYPE in request.headers.get("Accept", ""):
            return HttpResponse(swagger_in_protobuf(), content_type=CONTENT_TYPE)
        raise Refusal(406, f"application/json and {MEDIA_TYPE} are served")


class DefinitionsView(WireView):
    """`/apis/apiextensions.k8s.io/v1/customresourcedefinitions`."""

    def get(self, request: Request) -> Response:
        """List the definitions, or the one with a name. They change only with kueueweb itself, so there is no watch."""
        query = request.query_params
        if query_text(query, "watch").lower() not in ("", "0", "f", "false"):
            raise Refusal(405, f"{definitions.PLURAL}.{definitions.GROUP} cannot be watched")
        if query_text(query, "labelSelector"):
            raise Refusal(400, "labelSelector: Invalid value: the definitions have no labels")
        key, _, name = query_text(query, "fieldSelector").partition("=")
        if key not in ("", "metadata.name"):
            raise Refusal(400, f'fieldSelector: Unsupported value: "{key}": use metadata.name=NAME')
        found = definitions.definitions()
        kind = {"kind": f"{definitions.KIND}List", "apiVersion": f"{definitions.GROUP}/{definitions.VERSION}"}
        items = [item for item in found if item["metadata"]["name"] == name] if key else found
        return Response({**kind, "metadata": {"resourceVersion": "1"}, "items": items})


class DefinitionView(WireView):
    """One CustomResourceDefinition."""

    def get(self, request: Request, name: str) -> Response:
        """Return the definition."""
        found = next((each for each in definitions.definitions() if each["metadata"]["name"] == name), None)
        if found is None:
            raise not_found(f"{definitions.PLURAL}.{definitions.GROUP}", definitions.GROUP, definitions.PLURAL, name)
        return Response(found)


class OpenApiView(WireView):
    """`/openapi/v3`."""

    def get(self, request: Request) -> Response:
        """Return the addresses of the documents."""
        base = request.path.rstrip("/")
        addresses = [served[0].address(version) for found in groups().values() for version, served in found.items()]
        return Response({"paths": {address: {"serverRelativeURL": f"{base}/{address}"} for address in addresses}})


class OpenApiVersionView(WireView):
    """`/openapi/v3/apis/GROUP/VERSION`."""

    def get(self, request: Request, address: str) -> Response:
        """Return the resources of a group and a version."""
        for found in groups().values():
            for version, served in found.items():
                if served[0].address(version) == address:
                    return Response(_document(served, version))
        raise Refusal(404, "the server could not find the requested resource")


def _document(served: list[Resource], version: str) -> dict[str, Any]:
    paths: dict[str, Any] = {}
    schemas: dict[str, Any] = {}
    for resource in served:
        kind = {"group": resource.group, "version": version, "kind": resource.kind}
        within = "namespaces/{namespace}/" if resource.namespaced else ""
        parameters = [
            {"name": name, "in": "query", "schema": {"type": "string"}} for name in ("dryRun", "fieldValidation")
        ]
        patch = {"parameters": parameters, "responses": {}, "x-kubernetes-group-version-kind": kind}
        paths[f"/{resource.address(version)}/{within}{resource.plural}/{{name}}"] = {"patch": patch}
        schemas[f"{resource.group or 'core'}.{version}.{resource.kind}"] = {
            **_schema(resource, version),
            "x-kubernetes-group-version-kind": [kind],
        }
    information = {"title": "kueueweb", "version": version}
    return {"openapi": "3.0.0", "info": information, "paths": paths, "components": {"schemas": schemas}}


def _schema(resource: Resource, version: str) -> dict[str, Any]:
    """Return the fields of a kind that is declared here; other kinds' fields are described by the cluster that has
    them."""
    kind = KINDS.get(resource.kind)
    return anything() if kind is None else manifest_schema(kind, version)
