"""Every call of the API as a value: what is asked, and how the answer is read. Both clients send these."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar
from urllib.parse import quote
from uuid import uuid4

from kueueweb_client.errors import ApiError, ClientError
from kueueweb_client.types import ApplyResult, Key, Object, Page, WorkloadDetail

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")
BASE: Final = "/api/v1/"
MAX_PAGE: Final = 1000


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """A request and the reader of its answer. `path` is below /api/v1/, or below the cluster's address in Kubernetes'
    wire format; parameters that are None are left out."""

    method: str
    path: str
    read: Callable[[httpx.Response], T]
    parameters: Mapping[str, Any] = field(default_factory=dict)
    body: Any = None
    """Sent as JSON; text is sent as YAML."""
    headers: Mapping[str, str] = field(default_factory=dict)
    silent_seconds: float = 0
    """The silence of the server, in seconds, that is tolerated beyond the client's own time-out."""
    is_wire: bool = False
    """Whether it speaks Kubernetes' wire format, not REST."""

    def arguments(self, cluster: str) -> dict[str, Any]:
        """Return the arguments for `httpx`."""
        found: dict[str, Any] = {
            "method": self.method,
            "url": f"/kubernetes/{quote(cluster, safe='')}/{self.path}" if self.is_wire else BASE + self.path,
            "params": {
                **({} if self.is_wire else {"cluster": cluster}),
                **{key: _text(value) for key, value in self.parameters.items() if value is not None},
            },
            "headers": dict(self.headers),
        }
        if isinstance(self.body, str):
            found["content"] = self.body.encode()
            found["headers"]["Content-Type"] = "application/yaml"
        elif self.body is not None:
            found["json"] = self.body
        return found


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def answer(call: Call[T], response: httpx.Response) -> T:
    """Return the answer's value. Raises `ApiError` for a refusal."""
    if response.is_success or response.status_code == HTTPStatus.NOT_MODIFIED:
        return call.read(response)
    content = _refusal(response)
    retry = response.headers.get("Retry-After", "")
    raise ApiError(
        response.status_code,
        content.get("reason", "") or response.reason_phrase,
        content.get("message", "") or f"the server answered {response.status_code}",
        content.get("errors", ()) or _causes(content),
        int(retry) if retry.isdigit() else None,
        content.get("current"),
    )


def _refusal(response: httpx.Response) -> Mapping[str, Any]:
    """Return the body of a refusal: JSON, or YAML where YAML was asked for; empty for a body of another program."""
    if "yaml" in response.headers.get("Content-Type", ""):
        import yaml

        try:
            content = yaml.safe_load(response.text)
        except yaml.YAMLError:
            return {}
    else:
        try:
            content = response.json()
        except ValueError:
            return {}
    return content if isinstance(content, dict) else {}


def _causes(status: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the located mistakes of a metav1.Status."""
    details = status.get("details")
    causes = details.get("causes") if isinstance(details, dict) else None
    return [{"path": each.get("field", ""), "rule": each.get("message", "")} for each in causes or ()]


def path(*parts: str) -> str:
    """Build the path of an object; each part is escaped. Raises `ClientError` for the names . and .., which would lead
    to another address."""
    if any(part in (".", "..") for part in parts):
        raise ClientError("Invalid value: a name is not . or ..")
    return "".join(f"{quote(part, safe='')}/" for part in parts if part)


def _json(response: httpx.Response) -> Any:
    return response.json()


def page(noun: str, *names: str, **filters: Any) -> Call[Page]:
    """Read one page of a list."""
    return Call("GET", path(noun, *names), _json, {"limit": MAX_PAGE, **filters})


def read(noun: str, *names: str, **parameters: str) -> Call[Object]:
    """Return one object; empty parameters are left out."""
    return Call("GET", path(noun, *names), _json, {name: text or None for name, text in parameters.items()})


def read_with_tag(noun: str, *names: str) -> Call[tuple[Object, str]]:
    """Read one object and its ETag ("" if the server gives none)."""
    return Call("GET", path(noun, *names), lambda response: (response.json(), response.headers.get("ETag", "")))


def patch(noun: str, *names: str, changes: Mapping[str, Any], tag: str = "", dry_run: bool = False) -> Call[Object]:
    """Change some fields (JSON merge patch). With a tag, only if the object has not changed since."""
    headers = {"If-Match": tag} if tag else {}
    return Call("PATCH", path(noun, *names), _json, {"dry_run": dry_run or None}, dict(changes), headers)


def delete(noun: str, *names: str, dry_run: bool = False) -> Call[bool]:
    """Delete an object. The answer is True if it was deleted, False if it will be deleted once it is unused."""
    parameters = {"dry_run": dry_run or None}
    return Call("DELETE", path(noun, *names), lambda found: found.status_code == HTTPStatus.NO_CONTENT, parameters)


def workload(namespace: str, name: str) -> Call[WorkloadDetail]:
    """Read one workload with all fields."""
    return Call("GET", path("workloads", namespace, name), _json)


def changed_workload(namespace: str, name: str, version: str, seconds: int) -> Call[WorkloadDetail | None]:
    """Read one workload as soon as its resource_version differs from this one; None if it has not changed after this
    many seconds. Without a version, the answer comes at once."""
    return Call(
        "GET",
        path("workloads", namespace, name),
        lambda response: None if response.status_code == HTTPStatus.NOT_MODIFIED else response.json(),
        {"resource_version": version, "timeout_seconds": seconds} if version else {},
        silent_seconds=seconds if version else 0,
    )


def watch_workload(namespace: str, name: str, version: str = "") -> Call[str]:
    """Read one workload and each newer state of it, one event per line; with a version, only newer states."""
    return Call(
        "GET",
        path("workloads", namespace, name),
        lambda response: response.text,
        {"watch": True, "resource_version": version or None},
    )


def log(namespace: str, workload: str, pod: str, **options: Any) -> Call[str]:
    """Return the log of a pod. Options: container, follow, tail, since, timestamps, previous."""
    given = {key: value for key, value in options.items() if value not in ("", False)}
    return Call("GET", path("workloads", namespace, workload, "pods", pod, "log"), lambda found: found.text, given)


def submit(workloads: Sequence[Mapping[str, Any]], *, idempotency_key: str = "") -> Call[list[Key]]:
    """Submit workloads without a job, all or none. Without a key the call has one of its own, so that it can be
    repeated."""
    headers = {"Idempotency-Key": idempotency_key or uuid4().hex}
    return Call(
        "POST", "workloads/", lambda response: response.json()["workloads"], body=list(workloads), headers=headers
    )


def act(verb: str, keys: Sequence[Key], **more: Any) -> Call[list[Key]]:
    """Hold, release, requeue, cancel or finish many workloads (`verb`). The answer names the workloads that changed."""
    return Call(
        "POST",
        f"workloads/{verb}/",
        lambda response: response.json()["changed"],
        body={"workloads": list(keys), **more},
    )


def act_on(verb: str, keys: Sequence[Key], *, dry_run: bool = False, **more: Any) -> Call[Object]:
    """Act as `act` does, with `priority` and dry runs: {changed: [key], skipped: [{namespace, name, reason,
    message}]}."""
    return Call("POST", f"workloads/{verb}/", _json, {"dry_run": dry_run or None}, {"workloads": list(keys), **more})


def preview(manifests: str, **options: Any) -> Call[Object]:
    """Preview the effects of manifests, which are not stored. Options: effects, delete."""
    return Call("POST", "preview/", _json, options, manifests)


def apply(manifests: str, **options: Any) -> Call[ApplyResult]:
    """Apply manifests (YAML or JSON), all or none. Options: dry_run, set, prune, force, skip_unsupported."""
    return Call("POST", "manifests/", _json, options, body=manifests)


def manifests(kind: str, *names: str) -> Call[str]:
    """Read objects of a kind as YAML that can be applied again unchanged."""
    return Call(
        "GET",
        path("manifests", kind, *names),
        lambda response: response.text,
        headers={"Accept": "application/yaml, */*"},
    )


def manifest_objects(kind: str, *names: str) -> Call[Object]:
    """Read a List of the objects of a kind, as manifests that can be applied again unchanged; with a name, the
    object."""
    return Call("GET", path("manifests", kind, *names), _json, {"format": "json"})


def objects(address: str, plural: str, *, namespace: str = "", name: str = "", **parameters: Any) -> Call[Object]:
    """Read a page of a list in Kubernetes' wire format, or one object. `address` is as in apis/batch/v1; the parameters
    are Kubernetes': labelSelector, fieldSelector, limit, continue."""
    return Call("GET", _wire_path(address, plural, namespace, name), _json, parameters, is_wire=True)


def replace_object(
    address: str, plural: str, content: Object, *, namespace: str, name: str, dry_run: bool = False
) -> Call[Object]:
    """Replace an object in Kubernetes' wire format; its resourceVersion is compared."""
    parameters = {"dryRun": "All" if dry_run else None}
    return Call("PUT", _wire_path(address, plural, namespace, name), _json, parameters, body=content, is_wire=True)


def watch_objects(address: str, plural: str, *, namespace: str = "", **parameters: Any) -> Call[str]:
    """Read the changes of objects in Kubernetes' wire format, one event per line, from `resourceVersion` on."""
    asked = {"watch": True, "allowWatchBookmarks": True, **parameters}
    return Call("GET", _wire_path(address, plural, namespace), lambda found: found.text, asked, is_wire=True)


def open_api(address: str = "") -> Call[Object]:
    """Read the OpenAPI document of a group and a version such as `apis/kueue.x-k8s.io/v1beta2`; without one, their
    index."""
    return Call("GET", f"openapi/v3/{address}".rstrip("/"), _json, is_wire=True)


def _wire_path(address: str, plural: str, namespace: str = "", name: str = "") -> str:
    within = ("namespaces", namespace) if namespace else ()
    return f"{address}/{path(*within, plural, name).rstrip('/')}"


def token(username: str, password: str) -> Call[Object]:
    """Create a token with a name and a password: {token, expires_at}."""
    return Call("POST", "auth/token/", _json, body={"username": username, "password": password})


def device_login(wish: Mapping[str, Any]) -> Call[Object]:
    """Start a login through a web page, for a token {name, scope, namespaces, clusters, days}. The answer is
    {device_code, user_code, verification_uri_complete, expires_in, interval}."""
    return Call("POST", "auth/device/", _json, body=dict(wish))


def device_token(device_code: str) -> Call[Object]:
    """Fetch the token, once the user has confirmed; until then raises an `ApiError` with AuthorizationPending or
    SlowDown."""
    return Call("POST", "auth/device/token/", _json, body={"device_code": device_code})


def create_token(wish: Mapping[str, Any], service_account: str = "") -> Call[Object]:
    """Create a token for yourself, or for a service account: {name, scope, namespaces, clusters, days}."""
    where = path("service-accounts", service_account, "tokens") if service_account else path("auth", "tokens")
    return Call("POST", where, _json, body=dict(wish))


def revoke_token(token_id: str = "") -> Call[None]:
    """Revoke one of your tokens by its id, or all of them without one."""
    return Call("DELETE", path("auth", "tokens", token_id), lambda _: None)


def log_out() -> Call[None]:
    """Revoke the token of this call."""
    return Call("POST", "auth/logout/", lambda _: None)
