"""Mistakes in a manifest with their paths, and warnings about fields that are accepted."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class MistakeReason(StrEnum):
    """The kind of mistake; stable, so that clients may test for it. Kubernetes' cause, if it has one."""

    INVALID = "Invalid"
    REQUIRED = "Required"
    NOT_SUPPORTED = "NotSupported"
    DUPLICATE = "Duplicate"
    FORBIDDEN = "Forbidden"
    IMMUTABLE = "Immutable"
    TOO_MANY = "TooMany"
    TOO_LONG = "TooLong"
    UNKNOWN_FIELD = "UnknownField"
    WRONG_TYPE = "WrongType"
    """The value has another JSON type than the field."""
    UNSUPPORTED_KIND = "UnsupportedKind"
    """The document's kind, or this version of it, is not one that kueueweb stores; or a ConfigMap without settings."""
    NOT_PERMITTED = "NotPermitted"
    """The user lacks the permission; the value itself may be right."""
    MALFORMED = "Malformed"
    """The text is not valid YAML or JSON with a mapping at its top, or a header has an invalid format."""
    HOSTILE = "Hostile"
    """The document has YAML tags, or would cost too much to read, for example through nested aliases."""
    IN_USE = "InUse"
    """The object is being deleted, or its name is taken: by a group that has ended, or by a workload of another job."""


@dataclass(frozen=True, slots=True)
class LocatedError:
    """One mistake in a request.

    `document` counts from 0 within the request; `path` is the field, as in `spec.podSets[0].count`; `value` is what
    it contains; `rule` is what it violates; `remedy` is what to write instead; `source` names the file, if there is
    one.
    """

    document: int
    path: str
    value: Any
    rule: str
    remedy: str = ""
    reason: str = MistakeReason.INVALID
    source: str = ""

    def __str__(self) -> str:
        place = f"{self.source}, document {self.document}" if self.source else f"document {self.document}"
        value = "" if self.value is None else f" {self.value!r}:"
        remedy = f" {self.remedy}" if self.remedy else ""
        return f"{place}, {self.path or 'the whole'}:{value} {self.rule.rstrip('.')}.{remedy}"


@dataclass(slots=True)
class ValidationReport:
    """The mistakes of one document, which refuse it, and its warnings, which do not."""

    document: int = 0
    source: str = ""
    errors: list[LocatedError] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def error(
        self, path: str, value: Any, rule: str, remedy: str = "", reason: MistakeReason = MistakeReason.INVALID
    ) -> None:
        """Add a mistake. Long values are shortened."""
        self.errors.append(LocatedError(self.document, path, _brief(value), rule, remedy, reason, self.source))

    def warn(self, path: str, text: str) -> None:
        """Add a warning about a field that is accepted."""
        self.warnings.append(f"{path}: {text}" if path else text)


_MAX_VALUE_LENGTH = 200


def _brief(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float):
        return value
    text = value if isinstance(value, str) else repr(value)
    if len(text) > _MAX_VALUE_LENGTH:
        return f"{text[:_MAX_VALUE_LENGTH]}…"
    return value
