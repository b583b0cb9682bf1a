"""Permits requests, by the table of permissions and by REST's rules for lists."""

from __future__ import annotations

from accounts.services.access import WHOLE_KINDS, Access
from kueueweb.wire.discovery import READS, verbs_of
from kueueweb.wire.resources import Resource


def reads(access: Access, resource: Resource, namespace: str) -> bool:
    """Return whether the user may list the resource there; the list then has the objects that they may see. A queue
    admin reads the queues below its cohorts, whichever namespace they are in."""
    if resource.kind in WHOLE_KINDS:
        return access.sees_everything
    if not namespace or not resource.namespaced:
        return access.has_any_role
    return access.sees(namespace) or access.may_in_tree(resource.kind)


def allows(access: Access, resource: Resource, verb: str, namespace: str) -> bool:
    """Return whether a request with this verb is answered."""
    if verb not in verbs_of(resource):
        return False
    if verb in READS:
        return reads(access, resource, namespace)
    return access.may("submit", resource.kind, namespace) or access.may_in_tree(resource.kind)
