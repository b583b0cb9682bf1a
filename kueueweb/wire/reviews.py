"""Questions of users about themselves: whether a request is allowed, which requests are, and the user's name. They are
answered from our roles.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from rest_framework.request import Request
from rest_framework.response import Response

from clusters.served import pending_workloads
from clusters.served.kueue_kinds import GROUP
from kueueweb.wire import definitions
from kueueweb.wire.base import WireView
from kueueweb.wire.discovery import subresources_of, verbs_of
from kueueweb.wire.refusals import Refusal
from kueueweb.wire.resources import RESOURCES, resource_named
from kueueweb.wire.rights import allows, reads

_EVERYTHING: Final = "*"


class _ReviewView(WireView):
    kind: ClassVar[str]
    group: ClassVar[str]

    def post(self, request: Request) -> Response:
        """Return the question with its answer."""
        body = request.data
        if not isinstance(body, Mapping) or body.get("kind") not in (None, self.kind):
            raise Refusal(400, f"the object is not a {self.kind}")
        spec = body.get("spec") or {}
        if not isinstance(spec, Mapping):
            raise Refusal(400, "spec: Invalid value: must be an object")
        answer = {"kind": self.kind, "apiVersion": f"{self.group}/v1", "metadata": {"creationTimestamp": None}}
        return Response({**answer, "spec": spec, "status": self.status(spec)}, 201)

    def status(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer."""
        raise NotImplementedError


class AccessReviewView(_ReviewView):
    """`kubectl auth can-i VERB RESOURCE`."""

    kind = "SelfSubjectAccessReview"
    group = "authorization.k8s.io"

    def status(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        """Return whether the user may do it."""
        asked = spec.get("resourceAttributes")
        if not isinstance(asked, Mapping):
            other = spec.get("nonResourceAttributes")
            if not isinstance(other, Mapping):
                raise Refusal(422, "spec: Required value: resourceAttributes or nonResourceAttributes")
            path = other.get("path", "")
            return {"allowed": str(path).startswith(("/api", "/version", "/openapi"))}
        group, plural, verb, namespace = (
            str(asked.get(key) or "") for key in ("group", "resource", "verb", "namespace")
        )
        if _EVERYTHING in (group, plural, verb):
            return {"allowed": self.access.is_cluster_admin}
        allowed = self._allows(group, plural, str(asked.get("subresource") or ""), verb, namespace)
        if allowed is None:
            return {"allowed": False, "reason": f"{plural}.{group} is not served here"}
        if allowed:
            return {"allowed": True}
        return {"allowed": False, "reason": f"no role of {self.access.username} allows it"}

    def _allows(self, group: str, plural: str, subresource: str, verb: str, namespace: str) -> bool | None:
        """Return whether the verb is allowed; None for a resource that is not served."""
        if (group, plural, subresource) == (definitions.GROUP, definitions.PLURAL, ""):
            return verb in definitions.VERBS and self.access.has_any_role
        if (group, subresource) == (pending_workloads.GROUP, pending_workloads.PENDING_WORKLOADS):
            queue = resource_named(GROUP, plural)
            return None if queue is None else verb == "get" and reads(self.access, queue, namespace)
        resource = resource_named(group, plural)
        if resource is None or subresource not in ("", *subresources_of(resource)):
            return None
        if subresource in resource.subresources and verb != "get":
            return False
        return allows(self.access, resource, verb, namespace)


class RulesReviewView(_ReviewView):
    """`kubectl auth can-i --list`."""

    kind = "SelfSubjectRulesReview"
    group = "authorization.k8s.io"

    def status(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        """Return all that the user may do in a namespace."""
        namespace = str(spec.get("namespace") or "")
        rules = []
        for resource in RESOURCES:
            where = namespace if resource.namespaced else ""
            verbs = [verb for verb in verbs_of(resource) if allows(self.access, resource, verb, where)]
            if verbs:
                rules.append({"verbs": verbs, "apiGroups": [resource.group], "resources": [resource.plural]})
            if verbs and resource.subresources:
                names = [f"{resource.plural}/{name}" for name in resource.subresources]
                rules.append({"verbs": ["get"], "apiGroups": [resource.group], "resources": names})
        if self.access.has_any_role:
            of_kinds = {"apiGroups": [definitions.GROUP], "resources": [definitions.PLURAL]}
            rules.append({"verbs": list(definitions.VERBS), **of_kinds})
        addresses = ["/api", "/api/*", "/apis", "/apis/*", "/openapi", "/openapi/*", "/version"]
        paths = {"verbs": ["get"], "nonResourceURLs": addresses}
        return {"resourceRules": rules, "nonResourceRules": [paths], "incomplete": False}


class SubjectReviewView(_ReviewView):
    """`kubectl auth whoami`."""

    kind = "SelfSubjectReview"
    group = "authentication.k8s.io"

    def status(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        """Return the user."""
        return {"userInfo": {"username": self.access.username, "groups": ["system:authenticated"]}}
