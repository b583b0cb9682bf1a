"""Reading and writing objects by Kubernetes' rules: identity, conflicts, generations, graceful deletion, finalizers."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass

from simulation.api import errors, managed_fields
from simulation.api.objects import (
    JsonObject,
    is_deleting,
    name_of,
    namespace_of,
    random_suffix,
    timestamp,
    uid_of,
)
from simulation.api.resources import BY_PLURAL, Resource
from simulation.api.store import ObjectStore
from simulation.api.validation import (
    validate,
    validate_binding,
    validate_status,
    validate_update,
    with_defaults,
)
from simulation.api.webhooks import CREATE, UPDATE, AdmissionWebhooks, Attempt
from simulation.clock import Clock
from simulation.controllers.pod_admission import admitted_pod

_STATUS_ON_CREATE = frozenset({"nodes", "namespaces", "events", "leases", "configmaps", "priorityclasses"})
_SERVER_METADATA = ("uid", "creationTimestamp", "generation", "deletionTimestamp", "deletionGracePeriodSeconds")
FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"


@dataclass(frozen=True, slots=True)
class Writer:
    """The writer: its field manager, and whether nothing is to be stored (dryRun=All).

    * user: the account, as admission webhooks are told; empty: a controller of the cluster itself.
    """

    manager: str
    subresource: str = ""
    dry_run: bool = False
    user: str = ""

    @property
    def account(self) -> str:
        return self.user or f"system:serviceaccount:kube-system:{self.manager}"


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """metav1.DeleteOptions. grace_seconds None: the pod's own; propagation: Background, Foreground or Orphan."""

    grace_seconds: int | None = None
    propagation: str = "Background"
    uid: str = ""
    resource_version: str = ""


class Registry:
    """The verbs of the API on the objects of a store. All errors are ApiError.

    * seed: what uids and generated names are drawn from.
    """

    def __init__(self, store: ObjectStore, clock: Clock, seed: str) -> None:
        self.store = store
        self.clock = clock
        self.seed = seed
        self.webhooks = AdmissionWebhooks(store)

    def get(self, resource: Resource, namespace: str, name: str) -> JsonObject:
        found = self.store.get(resource.plural, namespace, name)
        if found is None:
            raise errors.not_found(resource.plural, name)
        return found

    def create(self, resource: Resource, namespace: str, body: JsonObject, writer: Writer) -> JsonObject:
        """Store a new object. Raises 409 AlreadyExists, 404 for its namespace, 422 for an invalid object."""
        item = self._identified(resource, namespace, body)
        self._require_namespace(resource, namespace)
        name = name_of(item)
        if self.store.get(resource.plural, namespace, name) is not None:
            raise errors.already_exists(resource.plural, name)
        if resource.subresources and resource.plural not in _STATUS_ON_CREATE:
            item.pop("status", None)
        item = with_defaults(resource, item)
        item = self.webhooks.mutated(Attempt(CREATE, resource, item, None, writer.account, writer.dry_run))
        if resource.plural == "pods":
            item = admitted_pod(self.store, item)
        item = self._born(resource, item)
        validate(resource, item)
        self.webhooks.validate(Attempt(CREATE, resource, item, None, writer.account, writer.dry_run))
        if not any(owner.fields for owner in managed_fields.owners_of(item)):
            item = managed_fields.after_update(None, item, writer.manager, writer.subresource, self.clock.now())
        return item if writer.dry_run else self.store.put(resource.plural, item)

    def update(self, resource: Resource, namespace: str, name: str, body: JsonObject, writer: Writer) -> JsonObject:
        """Replace an object or its status. Raises 409 Conflict if the body's resourceVersion or uid is not the live
        one."""
        live = self.get(resource, namespace, name)
        self._check_identity(resource, live, body)
        updated = self._overlaid(resource, live, body, writer)
        updated = managed_fields.after_update(live, updated, writer.manager, writer.subresource, self.clock.now())
        return self._store_update(resource, live, updated, writer)

    def change(
        self, resource: Resource, namespace: str, name: str, edit: Callable[[JsonObject], JsonObject], writer: Writer
    ) -> JsonObject:
        """Patch the live object with a function; a resourceVersion in the result is a precondition."""
        live = self.get(resource, namespace, name)
        return self.update(resource, namespace, name, edit(live), writer)

    def apply(
        self, resource: Resource, namespace: str, name: str, body: JsonObject, writer: Writer, force: bool
    ) -> tuple[JsonObject, bool]:
        """Apply on the server side; return (the object, whether it was created). Raises 409 with causes if managers
        disagree."""
        if body.get("metadata", {}).get("managedFields"):
            raise errors.bad_request("metadata.managedFields must be nil")
        identity = {"apiVersion": resource.api_version, "kind": resource.kind}
        body = {**identity, **body, "metadata": {**(body.get("metadata") or {}), "name": name}}
        live = self.store.get(resource.plural, namespace, name)
        if live is None:
            if writer.subresource:
                raise errors.not_found(resource.plural, name)
            owned = managed_fields.apply(
                self._identified(resource, namespace, body), body, writer.manager, "", self.clock.now()
            )
            return self.create(resource, namespace, owned, writer), True
        self._check_identity(resource, live, body)
        clashes = managed_fields.conflicts(live, body, writer.manager)
        if clashes and not force:
            raise errors.apply_conflict(resource.plural, name, clashes)
        merged = managed_fields.apply(live, body, writer.manager, writer.subresource, self.clock.now())
        updated = self._overlaid(resource, live, merged, writer)
        updated["metadata"] = {**updated["metadata"], "managedFields": merged["metadata"]["managedFields"]}
        return self._store_update(resource, live, updated, writer), False

    def bind(self, namespace: str, name: str, binding: JsonObject, writer: Writer) -> None:
        """Handle POST pods/NAME/binding: set the node once. Raises 409 if the pod is already bound, or the uid is
        another pod's."""
        pods = BY_PLURAL["pods"]
        pod = self.get(pods, namespace, name)
        metadata = binding.get("metadata") or {}
        if metadata.get("uid") and metadata["uid"] != uid_of(pod):
            why = f"the UID in the precondition ({metadata['uid']}) is not the pod's ({uid_of(pod)})"
            raise errors.conflict("pods/binding", name, why)
        node = validate_binding(pod, binding)
        if is_deleting(pod):
            raise errors.conflict("pods/binding", name, f"pod {name} is being deleted, cannot be assigned to a host")
        if pod["spec"].get("nodeName"):
            why = f'pod {name} is already assigned to node "{pod["spec"]["nodeName"]}"'
            raise errors.conflict("pods/binding", name, why)
        annotations = {**(pod["metadata"].get("annotations") or {}), **(metadata.get("annotations") or {})}
        bound = {**pod, "spec": {**pod["spec"], "nodeName": node}}
        if annotations:
            bound["metadata"] = {**pod["metadata"], "annotations": annotations}
        bound = managed_fields.after_update(pod, bound, writer.manager, "binding", self.clock.now())
        if not writer.dry_run:
            self.store.put("pods", bound)

    def delete(
        self, resource: Resource, namespace: str, name: str, options: DeleteOptions, dry_run: bool = False
    ) -> JsonObject:
        """Delete the object at once, or mark it for deletion if there is a grace period, a finalizer or a dependent to
        delete first."""
        live = self.get(resource, namespace, name)
        if options.uid and options.uid != uid_of(live):
            raise errors.conflict(resource.plural, name, "the UID in the precondition does not match the UID in record")
        if options.resource_version not in ("", live["metadata"]["resourceVersion"]):
            raise errors.conflict(resource.plural, name, "the ResourceVersion in the precondition does not match")
        grace = _grace_seconds(resource, live, options)
        finalizers = list(live["metadata"].get("finalizers") or ())
        for propagation, finalizer in (("Foreground", FOREGROUND), ("Orphan", ORPHAN)):
            if options.propagation == propagation and finalizer not in finalizers:
                finalizers.append(finalizer)
        if resource.plural == "namespaces" and not is_deleting(live):
            finalizers.append("kubernetes")
        if dry_run:
            return live
        if not finalizers and not grace:
            return self.store.remove(resource.plural, namespace, name)
        return self._mark_deleted(resource, live, finalizers, grace)

    def remove(self, resource: Resource, item: JsonObject) -> None:
        """Delete an object as a kubelet or controller does: at once, or after its finalizers."""
        namespace, name = namespace_of(item), name_of(item)
        live = self.store.get(resource.plural, namespace, name)
        if live is None or uid_of(live) != uid_of(item):
            return
        if live["metadata"].get("finalizers"):
            if not is_deleting(live) or live["metadata"].get("deletionGracePeriodSeconds"):
                self._mark_deleted(resource, live, list(live["metadata"]["finalizers"]), 0)
            return
        self.store.remove(resource.plural, namespace, name)

    def _mark_deleted(self, resource: Resource, live: JsonObject, finalizers: list[str], grace: int) -> JsonObject:
        metadata = {**live["metadata"], "deletionGracePeriodSeconds": grace}
        if not is_deleting(live):
            metadata["deletionTimestamp"] = timestamp(self.clock.now() + grace)
        elif grace >= live["metadata"].get("deletionGracePeriodSeconds", 0) and finalizers == (
            live["metadata"].get("finalizers") or []
        ):
            return live
        if finalizers:
            metadata["finalizers"] = finalizers
        marked = {**live, "metadata": metadata}
        if resource.plural == "namespaces":
            marked["status"] = {**(live.get("status") or {}), "phase": "Terminating"}
        return self.store.put(resource.plural, marked)

    def _identified(self, resource: Resource, namespace: str, body: JsonObject) -> JsonObject:
        metadata = dict(body.get("metadata") or {})
        if body.get("kind", resource.kind) != resource.kind:
            raise errors.bad_request(f"the kind of the object ({body['kind']}) is not {resource.kind}")
        if body.get("apiVersion", resource.api_version) != resource.api_version:
            raise errors.bad_request(
                f"the API version of the object ({body['apiVersion']}) is not {resource.api_version}"
            )
        if metadata.get("namespace", namespace) != namespace:
            raise errors.bad_request("the namespace of the object does not match the namespace of the request")
        if not metadata.get("name"):
            prefix = metadata.get("generateName")
            if not prefix:
                raise errors.invalid(resource.kind, "", "metadata.name", "name or generateName is required")
            suffix = random_suffix(self.seed, resource.plural, namespace, prefix, str(self.store.resource_version))
            metadata["name"] = f"{prefix}{suffix}"
        if resource.namespaced:
            metadata["namespace"] = namespace
        return {**body, "apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata}

    def _born(self, resource: Resource, item: JsonObject) -> JsonObject:
        metadata = {key: value for key, value in item["metadata"].items() if key not in _SERVER_METADATA}
        metadata.pop("resourceVersion", None)
        origin = f"{self.seed}/{self.store.resource_version}/{resource.plural}/{namespace_of(item)}/{name_of(item)}"
        metadata["uid"] = str(uuid.uuid5(uuid.NAMESPACE_URL, origin))
        metadata["creationTimestamp"] = timestamp(self.clock.now())
        if resource.generation:
            metadata["generation"] = 1
        born = {**item, "metadata": metadata}
        if resource.plural == "jobs" and "selector" not in born["spec"]:
            born["spec"] = _with_job_selector(born, str(metadata["uid"]))
        if resource.plural == "pods":
            born["status"] = {"phase": "Pending", "qosClass": "Burstable"}
        return born

    def _require_namespace(self, resource: Resource, namespace: str) -> None:
        if not resource.namespaced:
            return
        found = self.store.get("namespaces", "", namespace)
        if found is None:
            raise errors.not_found("namespaces", namespace)
        if is_deleting(found):
            why = f"unable to create new content in namespace {namespace} because it is being terminated"
            raise errors.ApiError(403, "Forbidden", why)

    def _check_identity(self, resource: Resource, live: JsonObject, body: JsonObject) -> None:
        metadata = body.get("metadata") or {}
        if metadata.get("name", name_of(live)) != name_of(live):
            raise errors.bad_request("the name of the object does not match the name on the URL")
        if metadata.get("namespace", namespace_of(live)) != namespace_of(live):
            raise errors.bad_request("the namespace of the object does not match the namespace on the URL")
        if metadata.get("uid", uid_of(live)) != uid_of(live):
            raise errors.conflict(resource.plural, name_of(live), "the UID in the object is another object's")
        expected = metadata.get("resourceVersion") or live["metadata"]["resourceVersion"]
        if expected != live["metadata"]["resourceVersion"]:
            why = "the object has been modified; please apply your changes to the latest version and try again"
            raise errors.conflict(resource.plural, name_of(live), why)

    def _overlaid(self, resource: Resource, live: JsonObject, body: JsonObject, writer: Writer) -> JsonObject:
        """Return the live object with what this write may change: the status through /status, all else through the
        object."""
        if writer.subresource == "status":
            metadata = {**live["metadata"], **_user_metadata(body)}
            return {**live, "metadata": metadata, "status": body.get("status") or {}}
        metadata = {key: value for key, value in live["metadata"].items() if key in (*_SERVER_METADATA, "namespace")}
        metadata.update({"name": name_of(live), "managedFields": live["metadata"].get("managedFields") or []})
        metadata.update(_user_metadata(body))
        if live["metadata"].get("generateName"):
            metadata["generateName"] = live["metadata"]["generateName"]
        updated = {**body, "apiVersion": live["apiVersion"], "kind": live["kind"], "metadata": metadata}
        if "status" in live and "status" in resource.subresources:
            updated["status"] = live["status"]
        return with_defaults(resource, updated)

    def _store_update(self, resource: Resource, live: JsonObject, updated: JsonObject, writer: Writer) -> JsonObject:
        if not writer.subresource:
            attempt = Attempt(UPDATE, resource, updated, live, writer.account, writer.dry_run)
            updated = self.webhooks.mutated(attempt)
        if writer.subresource == "status":
            validate_status(resource, updated)
        else:
            validate(resource, updated)
            validate_update(resource, live, updated)
        if not writer.subresource:
            self.webhooks.validate(Attempt(UPDATE, resource, updated, live, writer.account, writer.dry_run))
        if resource.generation and live.get("spec") != updated.get("spec"):
            generation = live["metadata"].get("generation", 1) + 1
            updated = {**updated, "metadata": {**updated["metadata"], "generation": generation}}
        if writer.dry_run or _same(live, updated):
            return live if not writer.dry_run else updated
        metadata = updated["metadata"]
        if is_deleting(live) and not metadata.get("finalizers") and not metadata.get("deletionGracePeriodSeconds"):
            self.store.put(resource.plural, updated)
            return self.store.remove(resource.plural, namespace_of(live), name_of(live))
        return self.store.put(resource.plural, updated)


def _user_metadata(body: JsonObject) -> JsonObject:
    metadata = body.get("metadata") or {}
    return {
        key: metadata[key] for key in ("labels", "annotations", "finalizers", "ownerReferences") if metadata.get(key)
    }


def _grace_seconds(resource: Resource, live: JsonObject, options: DeleteOptions) -> int:
    """Only pods that a node runs are given time to stop."""
    if resource.plural != "pods":
        return 0
    finished = (live.get("status") or {}).get("phase") in ("Succeeded", "Failed")
    if not live["spec"].get("nodeName") or finished:
        return 0
    if options.grace_seconds is not None:
        return options.grace_seconds
    return int(live["spec"].get("terminationGracePeriodSeconds", 30))


def _with_job_selector(job: JsonObject, uid: str) -> JsonObject:
    labels = {
        "batch.kubernetes.io/controller-uid": uid,
        "batch.kubernetes.io/job-name": name_of(job),
        "controller-uid": uid,
        "job-name": name_of(job),
    }
    spec: JsonObject = dict(job["spec"])
    template = dict(spec["template"])
    metadata = dict(template.get("metadata") or {})
    template["metadata"] = {**metadata, "labels": {**(metadata.get("labels") or {}), **labels}}
    selector = {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
    return {**spec, "template": template, "selector": selector}


def _same(live: JsonObject, updated: JsonObject) -> bool:
    """Return whether a write changes nothing but timestamps of the book-keeping; then Kubernetes keeps the
    resourceVersion."""
    return _comparable(live) == _comparable(updated)


def _comparable(item: JsonObject) -> JsonObject:
    metadata = {key: value for key, value in item["metadata"].items() if key != "resourceVersion"}
    metadata["managedFields"] = [
        {key: value for key, value in entry.items() if key != "time"} for entry in metadata.get("managedFields") or ()
    ]
    return {**item, "metadata": metadata}
