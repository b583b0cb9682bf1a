"""Lists whose items have a key: how Kubernetes merges them, in server-side apply and in strategic merge patches.

The key of a list follows from the name of its field. The names are those of Kueue's definitions and of Kubernetes' pod
templates (`x-kubernetes-list-type`, `x-kubernetes-list-map-keys`). A list without a key here is one value, which is
replaced whole.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

_BY_NAME: Final = ("name",)
_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(
        (
            "admissionChecks", "claims", "containers", "env", "ephemeralContainers", "flavors", "imagePullSecrets",
            "initContainers", "podSets", "preemptionGates", "resourceClaims", "resources", "schedulingGates", "volumes",
        ),
        _BY_NAME,
    ),
    "conditions": ("type",),
    "hostAliases": ("ip",),
    "nodeSelector": ("key",),
    "ownerReferences": ("uid",),
    "ports": ("containerPort", "protocol"),
    "topologySpreadConstraints": ("topologyKey", "whenUnsatisfiable"),
    "volumeDevices": ("devicePath",),
    "volumeMounts": ("mountPath",),
}  # fmt: skip
_DEFAULTS: Final = {"protocol": "TCP"}
"""Parts of a key that may be left out."""
_SETS: Final = frozenset({"finalizers", "managedResources", "onFlavors"})
"""Lists of texts that are sets."""

Key = tuple[str, ...]


def keys_of(field: str, items: Any) -> tuple[str, ...]:
    """Return the names of the fields that identify the items of a list; empty if the list is a single value."""
    keys = _KEYS.get(field, ())
    if not isinstance(items, list) or not all(isinstance(item, Mapping) for item in items):
        return ()
    return keys if all(key in item or key in _DEFAULTS for item in items for key in keys) else ()


def is_set(field: str, items: Any) -> bool:
    """Return whether a list is a set of texts."""
    return field in _SETS and isinstance(items, list) and all(isinstance(item, str) for item in items)


def key_of(item: Mapping[str, Any], keys: Sequence[str]) -> Key:
    """Return an item's key. Two items of one list with the same key are one item."""
    return tuple(str(item.get(key, _DEFAULTS.get(key, ""))) for key in keys)


def merged_in_order(there: Sequence[Any], wanted: Sequence[Any], key: Callable[[Any], Any]) -> list[tuple[Any, Any]]:
    """Return the pairs (present item or None, wanted item or None) of a merged list in its order. The wanted items keep
    their own order; an item that is only present stays behind the item that it follows now."""
    known = {key(item): item for item in there}
    names = {key(item) for item in wanted}
    followers: dict[Any, list[Any]] = {}
    anchor = None
    for name, item in known.items():
        if name in names:
            anchor = name
        else:
            followers.setdefault(anchor, []).append(item)
    pairs: list[tuple[Any, Any]] = [(item, None) for item in followers.get(None, ())]
    for name, item in {key(item): item for item in wanted}.items():
        pairs.append((known.get(name), item))
        pairs += [(follower, None) for follower in followers.get(name, ())]
    return pairs
