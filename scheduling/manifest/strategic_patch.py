"""Strategic merge patch: Kubernetes' own patch, which merges the items of lists by their keys.

`kubectl apply`, `edit` and `patch` send it for built-in kinds such as Job. It has RFC 7386's rules for maps, and the
directives `$patch`, `$retainKeys`, `$setElementOrder/FIELD` and `$deleteFromPrimitiveList/FIELD`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from scheduling.manifest.associative_lists import is_set, key_of, keys_of, merged_in_order

_PATCH: Final = "$patch"
_RETAIN: Final = "$retainKeys"
_ORDER: Final = "$setElementOrder/"
_DELETE: Final = "$deleteFromPrimitiveList/"


def strategic_patch(target: Any, patch: Any) -> Any:
    """Return the target with the patch carried out. Neither argument is changed.

    Raises ValueError, with the directive and its value, for a directive that Kubernetes does not know.
    """
    if not isinstance(patch, Mapping):
        return patch
    there = target if isinstance(target, Mapping) else {}
    directive = patch.get(_PATCH, "merge")
    if directive in ("replace", "delete"):
        return {key: value for key, value in patch.items() if key != _PATCH} if directive == "replace" else {}
    if directive != "merge":
        raise ValueError(f'$patch: Unsupported value: "{directive}": supported values: "delete", "merge", "replace"')
    retained = patch.get(_RETAIN)
    result = {key: value for key, value in there.items() if not isinstance(retained, list) or key in retained}
    for key, value in patch.items():
        if not key.startswith("$"):
            _patch_field(result, key, value)
    for key, value in patch.items():
        if key.startswith("$"):
            _carry_out(result, key, value)
    return result


def _carry_out(result: dict[str, Any], directive: str, value: Any) -> None:
    """Carry out a directive about one list of the patched map."""
    if directive.startswith(_DELETE):
        _delete_from(result, directive.removeprefix(_DELETE), value)
    elif directive.startswith(_ORDER):
        _order(result, directive.removeprefix(_ORDER), value)
    elif directive not in (_PATCH, _RETAIN):
        raise ValueError(f'{directive}: Unsupported value: "{directive}": no directive of a strategic merge patch')


def _patch_field(result: dict[str, Any], key: str, value: Any) -> None:
    if value is None or (isinstance(value, Mapping) and value.get(_PATCH) == "delete"):
        result.pop(key, None)
    elif isinstance(value, list):
        result[key] = _patched_list(key, result.get(key), value)
    else:
        result[key] = strategic_patch(result.get(key), value)


def _patched_list(field: str, there: Any, patch: list[Any]) -> list[Any]:
    directives = [item.get(_PATCH) for item in patch if isinstance(item, Mapping)]
    if "replace" in directives:
        return [item for item in patch if not (isinstance(item, Mapping) and item.get(_PATCH) == "replace")]
    known = there if isinstance(there, list) else []
    if is_set(field, [*known, *patch]):
        return list(dict.fromkeys([*known, *patch]))
    keys = keys_of(field, [*known, *patch])[:1]
    if not keys:
        return patch
    gone = {key_of(item, keys) for item in patch if item.get(_PATCH) == "delete"}
    changes = {key_of(item, keys): item for item in patch if item.get(_PATCH) != "delete"}
    kept = [item for item in known if key_of(item, keys) not in gone]
    names = {key_of(item, keys) for item in kept}
    patched = [strategic_patch(item, changes.get(key_of(item, keys), {})) for item in kept]
    return patched + [strategic_patch({}, item) for name, item in changes.items() if name not in names]


def _delete_from(result: dict[str, Any], field: str, values: Any) -> None:
    if isinstance(result.get(field), list) and isinstance(values, list):
        result[field] = [item for item in result[field] if item not in values]


def _order(result: dict[str, Any], field: str, order: Any) -> None:
    items = result.get(field)
    if not isinstance(items, list) or not isinstance(order, list):
        return
    keys = keys_of(field, [*items, *order] if all(isinstance(item, Mapping) for item in order) else items)[:1]

    def key(item: Any) -> Any:
        return key_of(item, keys) if keys and isinstance(item, Mapping) else str(item)

    result[field] = [there for there, _ in merged_in_order(items, order, key) if there is not None]
