"""Views of discovery and of the version."""

from __future__ import annotations

import platform
from typing import Any, Final

from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from kueueweb.wire import discovery
from kueueweb.wire.base import WireView, accepted
from kueueweb.wire.refusals import Refusal

_DISCOVERY: Final = "apidiscovery.k8s.io"
_VERSIONS: Final = ("v2", "v2beta1")
_MAJOR: Final = 1
_MINOR: Final = 36
"""The Kubernetes whose wire format this is: clients choose their requests by it."""
_NO_PATH: Final = "the server could not find the requested resource"


def _aggregated_version(request: Request) -> str | None:
    """Return the version of aggregated discovery that the client prefers to a plain answer."""
    for form in accepted(request):
        if form.get("g") == _DISCOVERY and form.get("as") == "APIGroupDiscoveryList" and form.get("v") in _VERSIONS:
            return form["v"]
        if "as" not in form:
            return None
    return None


def _answer(request: Request, plain: dict[str, Any], *, core: bool) -> Response:
    version = _aggregated_version(request)
    if version is None:
        return Response(plain)
    body = {"apiVersion": f"{_DISCOVERY}/{version}", **discovery.aggregated(core=core)}
    form = f"application/json;g={_DISCOVERY};v={version};as=APIGroupDiscoveryList"
    return Response(body, content_type=form, headers={"Vary": "Accept"})


class CoreVersionsView(WireView):
    """`/api`."""

    def get(self, request: Request) -> Response:
        """Return the versions of the core group."""
        return _answer(request, discovery.core_versions(), core=True)


class GroupsView(WireView):
    """`/apis`."""

    def get(self, request: Request) -> Response:
        """Return the groups."""
        return _answer(request, discovery.group_list(), core=False)


class GroupView(WireView):
    """`/apis/GROUP`."""

    def get(self, request: Request, group: str) -> Response:
        """Return the versions of a group."""
        found = discovery.group(group)
        if found is None:
            raise Refusal(404, _NO_PATH)
        return Response(found)


class ResourcesView(WireView):
    """`/api/v1` and `/apis/GROUP/VERSION`."""

    def get(self, request: Request, version: str, group: str = "") -> Response:
        """Return the resources of a group and a version."""
        found = discovery.resource_list(group, version)
        if found is None:
            raise Refusal(404, _NO_PATH)
        return Response(found)


class VersionView(WireView):
    """`/version`."""

    def get(self, request: Request) -> Response:
        """Return the version of Kubernetes whose wire format is served."""
        return Response(
            {
                "major": str(_MAJOR),
                "minor": str(_MINOR),
                "gitVersion": f"v{_MAJOR}.{_MINOR}.0+kueueweb",
                "gitCommit": "",
                "gitTreeState": "clean",
                "buildDate": timezone.now().strftime("%Y-%m-%dT00:00:00Z"),
                "goVersion": "",
                "compiler": platform.python_implementation(),
                "platform": f"{platform.system().lower()}/{platform.machine()}",
            }
        )


class MissingView(WireView):
    """Addresses of Kubernetes that are not served."""

    def get(self, request: Request, **_: str) -> Response:
        """404, in Kubernetes' words."""
        raise Refusal(404, _NO_PATH)

    post = put = patch = delete = get
