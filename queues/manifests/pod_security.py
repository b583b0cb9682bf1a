"""Kubernetes' Pod Security Standards: fields that a pod spec may not set at the levels baseline and restricted
(pure).
"""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any, Final, NamedTuple

LEVEL_LABEL: Final = "pod-security.kubernetes.io/enforce"
"""Kubernetes' own label on a namespace."""


class Level(StrEnum):
    """The host access that a pod may request; each level includes the next one."""

    PRIVILEGED = "privileged"
    BASELINE = "baseline"
    RESTRICTED = "restricted"


class Violation(NamedTuple):
    """A field of a pod spec, its value, and the rule that it breaks."""

    path: str
    value: Any
    rule: str


_HOST: Final = ("hostNetwork", "hostPID", "hostIPC")
_BASELINE_CAPABILITIES: Final = frozenset(
    [
        "AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE", "SETFCAP",
        "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT",
    ]
)  # fmt: skip
_RESTRICTED_CAPABILITIES: Final = frozenset(["NET_BIND_SERVICE"])
_RESTRICTED_VOLUMES: Final = frozenset(
    [
        "configMap",
        "csi",
        "downwardAPI",
        "emptyDir",
        "ephemeral",
        "image",
        "persistentVolumeClaim",
        "projected",
        "secret",
    ]
)
_SELINUX_TYPES: Final = frozenset(["", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"])
_SYSCTLS: Final = frozenset(
    [
        "kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.ip_local_reserved_ports",
        "net.ipv4.ip_unprivileged_port_start", "net.ipv4.ping_group_range", "net.ipv4.tcp_fin_timeout",
        "net.ipv4.tcp_keepalive_intvl", "net.ipv4.tcp_keepalive_probes", "net.ipv4.tcp_keepalive_time",
        "net.ipv4.tcp_rmem", "net.ipv4.tcp_syncookies", "net.ipv4.tcp_wmem",
    ]
)  # fmt: skip


def violations(level: Level, spec: Mapping[str, Any]) -> Iterator[Violation]:
    """Yield the parts of a pod spec that the level forbids."""
    if level is Level.PRIVILEGED:
        return
    yield from _baseline_pod(spec)
    for path, container in _containers(spec):
        yield from _baseline_container(path, container)
    if level is Level.RESTRICTED:
        yield from _restricted_volumes(spec)
        for path, container in _containers(spec):
            yield from _restricted_container(path, container, _map(spec, "securityContext"))


def _baseline_pod(spec: Mapping[str, Any]) -> Iterator[Violation]:
    for name in _HOST:
        if spec.get(name):
            yield Violation(name, spec[name], "must not be true")
    for number, volume in enumerate(_items(spec, "volumes")):
        if volume.get("hostPath") is not None:
            yield Violation(f"volumes[{number}].hostPath", volume["hostPath"], "must not be used")
    context = _map(spec, "securityContext")
    yield from _common_context("securityContext", context)
    for number, sysctl in enumerate(_items(context, "sysctls")):
        if sysctl.get("name") not in _SYSCTLS:
            yield Violation(f"securityContext.sysctls[{number}].name", sysctl.get("name"), "is not a safe sysctl")


def _common_context(path: str, context: Mapping[str, Any]) -> Iterator[Violation]:
    """Check the fields that both pods and containers have."""
    linux = _map(context, "seLinuxOptions")
    if (linux.get("type") or "") not in _SELINUX_TYPES:
        yield Violation(f"{path}.seLinuxOptions.type", linux["type"], "must be a container type")
    for name in ("user", "role"):
        if linux.get(name):
            yield Violation(f"{path}.seLinuxOptions.{name}", linux[name], "must not be set")
    for name in ("seccompProfile", "appArmorProfile"):
        if _map(context, name).get("type") == "Unconfined":
            yield Violation(f"{path}.{name}.type", "Unconfined", "must not be Unconfined")
    if _map(context, "windowsOptions").get("hostProcess"):
        yield Violation(f"{path}.windowsOptions.hostProcess", True, "must not be true")


def _baseline_container(path: str, container: Mapping[str, Any]) -> Iterator[Violation]:
    context = _map(container, "securityContext")
    here = f"{path}.securityContext"
    yield from _common_context(here, context)
    if context.get("privileged"):
        yield Violation(f"{here}.privileged", True, "must not be true")
    if context.get("procMount") not in (None, "Default"):
        yield Violation(f"{here}.procMount", context["procMount"], "must be Default")
    yield from _added_capabilities(here, context, _BASELINE_CAPABILITIES)
    for number, port in enumerate(_items(container, "ports")):
        if port.get("hostPort"):
            yield Violation(f"{path}.ports[{number}].hostPort", port["hostPort"], "must not be set")


def _added_capabilities(path: str, context: Mapping[str, Any], allowed: frozenset[str]) -> Iterator[Violation]:
    added = _map(context, "capabilities").get("add")
    for capability in added if isinstance(added, list) else ():
        if str(capability) not in allowed:
            rule = f"may only add {', '.join(sorted(allowed))}"
            yield Violation(f"{path}.capabilities.add", capability, rule)


def _restricted_volumes(spec: Mapping[str, Any]) -> Iterator[Violation]:
    for number, volume in enumerate(_items(spec, "volumes")):
        for name in volume.keys() - _RESTRICTED_VOLUMES - {"name", "hostPath"}:
            yield Violation(f"volumes[{number}].{name}", volume[name], "is not an allowed volume type")


def _restricted_container(path: str, container: Mapping[str, Any], pod: Mapping[str, Any]) -> Iterator[Violation]:
    context = _map(container, "securityContext")
    here = f"{path}.securityContext"
    if context.get("allowPrivilegeEscalation") is not False:
        value = context.get("allowPrivilegeEscalation")
        yield Violation(f"{here}.allowPrivilegeEscalation", value, "must be false")
    if not context.get("runAsNonRoot", pod.get("runAsNonRoot")):
        yield Violation(f"{here}.runAsNonRoot", context.get("runAsNonRoot"), "must be true")
    user = context.get("runAsUser", pod.get("runAsUser"))
    if user == 0:
        yield Violation(f"{here}.runAsUser", 0, "must not be 0")
    profile = (_map(context, "seccompProfile") or _map(pod, "seccompProfile")).get("type")
    if profile not in ("RuntimeDefault", "Localhost"):
        yield Violation(f"{here}.seccompProfile.type", profile, "must be RuntimeDefault or Localhost")
    dropped = _map(context, "capabilities").get("drop")
    if not isinstance(dropped, list) or "ALL" not in dropped:
        yield Violation(f"{here}.capabilities.drop", dropped, "must hold ALL")
    yield from _added_capabilities(here, context, _RESTRICTED_CAPABILITIES)


def _containers(spec: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for key in ("initContainers", "containers", "ephemeralContainers"):
        for number, container in enumerate(_items(spec, key)):
            yield f"{key}[{number}]", container


def _items(holder: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    found = holder.get(key)
    return [each for each in found if isinstance(each, Mapping)] if isinstance(found, list | tuple) else []


def _map(holder: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = holder.get(key)
    return found if isinstance(found, Mapping) else {}
