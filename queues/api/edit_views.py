"""Changing configuration objects over REST, for cluster admins."""

from collections.abc import Mapping
from typing import Any, ClassVar

from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api.scope import json_object
from accounts.exceptions import ManifestErrors
from accounts.services.apply_result import Action
from queues.api import configuration_serializers as shapes
from queues.api.configuration_views import KindDetailView
from queues.models import ResourceFlavor
from queues.services.configuration import apply_object, delete_object
from queues.services.configuration_input import manifest_from, relocated
from queues.services.configuration_rows import RENDERERS
from scheduling.manifest.merge_patch import merge_patch


class EditView(KindDetailView):
    """One object that can be changed. `namespace` is empty for kinds that have none."""

    also_answers: ClassVar = {
        "PUT": {status.HTTP_201_CREATED: "It was not there and is created."},
        "DELETE": {status.HTTP_202_ACCEPTED: "Something still holds it: it goes when nothing does any more."},
    }

    def put(self, request: Request, name: str, namespace: str = "") -> Response:
        """Create the object, or replace what it says; what the body leaves out gets Kueue's default."""
        self.access.require("submit", self.kind)
        return self._apply(name, namespace, json_object(request.data))

    def patch(self, request: Request, name: str, namespace: str = "") -> Response:
        """Change what the body names (JSON merge patch): null goes back to the default, lists are replaced whole."""
        self.access.require("submit", self.kind)
        before = RENDERERS[self.kind](self.find(name, namespace))
        return self._apply(name, namespace, merge_patch(before, json_object(request.data)))

    def delete(self, request: Request, name: str, namespace: str = "") -> Response:
        """Delete the object, or mark it (202): it goes when nothing holds it any more."""
        self.access.require("submit", self.kind)
        if not delete_object(self.cluster, self.kind, name, namespace, actor=self.access.username):
            return Response(status=status.HTTP_204_NO_CONTENT)
        return Response(self.render([self.find(name, namespace)])[0], status.HTTP_202_ACCEPTED)

    def _apply(self, name: str, namespace: str, body: Mapping[str, Any]) -> Response:
        try:
            manifest = manifest_from(self.kind, name, namespace, body)
            applied = apply_object(self.cluster, manifest, kind=self.kind, actor=self.access.username)
        except ManifestErrors as mistakes:
            raise relocated(self.kind, mistakes) from mistakes
        created = applied.action is Action.CREATED
        return Response(
            self.render([self.find(name, namespace)])[0],
            status.HTTP_201_CREATED if created else status.HTTP_200_OK,
            headers={"Warning": ", ".join(f'299 - "{_quoted(text)}"' for text in applied.warnings)}
            if applied.warnings
            else None,
        )


class ResourceFlavorView(EditView):
    """`resource-flavors/{name}/`."""

    kind = "ResourceFlavor"
    queryset = ResourceFlavor.objects.all()
    serializer_class = shapes.ResourceFlavorSerializer


def _quoted(text: str) -> str:
    """A warning as an HTTP header takes it (RFC 9110, quoted-string in ASCII)."""
    return text.encode("ascii", "replace").decode().replace("\\", "\\\\").replace('"', '\\"')
