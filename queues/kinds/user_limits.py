"""Limits by user and group. Kueue has no field for them, so a manifest states them in an annotation."""

import json
from typing import Any, Final

from kinds import openapi
from kinds.declaration import Reading
from kinds.field_types import AnnotationType
from queues.kinds.annotated_json import read_json_annotation
from scheduling.manifest import FieldReader, MistakeReason
from scheduling.manifest.syntax import qualified_name
from scheduling.model.cohort import UserLimit
from scheduling.model.quantity import format_amount, parse_amount

ANNOTATION: Final = "kueueweb.io/user-limits"

_MAX_LIMITS: Final = 256
_MAX_USERS: Final = 256
_MAX_RESOURCES: Final = 64
_MAX_NAME: Final = 150
"""The longest name of a user or a group."""

UserLimits = list[dict[str, Any]]
"""[{users, groups, workloads, resources}], without unset fields except `users`; amounts are quantities."""


class LimitsByUser(AnnotationType):
    """The most that each user, and each group, may hold at the same time; [] limits none."""

    @property
    def default(self) -> UserLimits:
        return []

    def read(self, holder: FieldReader, key: str, reading: Reading, *, required: bool) -> UserLimits:
        return _read(holder, key)

    def read_annotation(self, text: str) -> UserLimits:
        """Read the value of the annotation, which is JSON. Raises ValueError with its first mistake."""
        return read_json_annotation(text, "a JSON list of {users, groups, workloads, resources}", _read)

    def schema(self) -> openapi.Schema:
        return openapi.text()

    def write_annotation(self, value: UserLimits) -> str:
        return json.dumps(value)

    def core(self, value: UserLimits) -> tuple[UserLimit, ...]:
        return tuple(
            UserLimit(
                users=tuple(stated.get("users") or ()),
                groups=tuple(stated.get("groups") or ()),
                workloads=stated.get("workloads", 0),
                resources={name: parse_amount(name, text) for name, text in (stated.get("resources") or {}).items()},
            )
            for stated in value
        )


def _read(holder: FieldReader, key: str) -> UserLimits:
    named: _Named = {"users": set(), "groups": set()}
    return [_read_limit(item, named) for item in holder.items(key, max_items=_MAX_LIMITS)]


_Named = dict[str, set[str]]
"""The users and the groups of earlier limits: they would hide another limit for the same one."""


def _read_limit(item: FieldReader, named: _Named) -> dict[str, Any]:
    found: dict[str, Any] = {"users": _read_names(item, "users", named)}
    groups = _read_names(item, "groups", named)
    if groups:
        found["groups"] = groups
    if not (found["users"] or groups or item.report.errors):
        rule = "Required value: a limit needs users or groups"
        item.error("users", rule, "Name users or groups.", MistakeReason.REQUIRED)
    workloads = item.optional_integer("workloads", minimum=1)
    if workloads is not None:
        found["workloads"] = workloads
    resources = _read_resources(item)
    if resources:
        found["resources"] = resources
    if workloads is None and not item.has("resources"):
        item.error(
            "resources", "Required value: a limit needs workloads or resources", "Add one.", MistakeReason.REQUIRED
        )
    item.close()
    return found


def _read_names(item: FieldReader, key: str, named: _Named) -> list[str]:
    names = item.texts(key, max_items=_MAX_USERS, syntax=_user_name)
    for name in names:
        if name in named[key]:
            rule = f"Duplicate value: an earlier limit names {name}"
            item.error(key, rule, "Remove one.", MistakeReason.DUPLICATE)
    named[key].update(names)
    return names


def _read_resources(item: FieldReader) -> dict[str, str]:
    listed = item.fields("resources")
    if listed is None:
        return {}
    names = list(listed.content)
    if not 1 <= len(names) <= _MAX_RESOURCES:
        item.error("resources", f"must have 1 to {_MAX_RESOURCES} entries, has {len(names)}")
    found: dict[str, str] = {}
    for name in names[:_MAX_RESOURCES]:
        broken = qualified_name(name)
        if broken:
            listed.error(name, f"as a resource name {broken}")
        amount = listed.amount(name, name)
        if amount is not None:
            found[name] = format_amount(name, amount)
    return found


def _user_name(text: str) -> str | None:
    if not text.strip():
        return "must not be empty"
    return None if len(text) <= _MAX_NAME else f"must be at most {_MAX_NAME} characters long"
