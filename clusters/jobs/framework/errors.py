"""Mistakes in a job: errors of fields, named as Kubernetes names them, and errors of a job as a whole."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class ErrorType(StrEnum):
    """Kubernetes' `field.ErrorType`."""

    INVALID = "FieldValueInvalid"
    FORBIDDEN = "FieldValueForbidden"
    REQUIRED = "FieldValueRequired"
    DUPLICATE = "FieldValueDuplicate"
    TOO_MANY = "FieldValueTooMany"
    TOO_LONG = "FieldValueTooLong"


_WORDS = {
    ErrorType.FORBIDDEN: "Forbidden",
    ErrorType.REQUIRED: "Required value",
    ErrorType.TOO_MANY: "Too many",
    ErrorType.TOO_LONG: "Too long",
}


@dataclass(frozen=True, slots=True)
class FieldError:
    """A field whose value breaks a rule."""

    type: ErrorType
    field: str
    detail: str
    value: str = ""

    @property
    def message(self) -> str:
        """The mistake in Kubernetes' words."""
        value = json.dumps(self.value, ensure_ascii=False)
        if self.type is ErrorType.DUPLICATE:
            return f"Duplicate value: {value}"
        said = f"Invalid value: {value}" if self.type is ErrorType.INVALID else _WORDS[self.type]
        return f"{said}: {self.detail}" if self.detail else said


FieldErrors = list[FieldError]


def invalid(field: str, value: Any, detail: str) -> FieldError:
    return FieldError(ErrorType.INVALID, field, detail, str(value))


def forbidden(field: str, detail: str) -> FieldError:
    return FieldError(ErrorType.FORBIDDEN, field, detail)


def required(field: str, detail: str) -> FieldError:
    return FieldError(ErrorType.REQUIRED, field, detail)


def duplicate(field: str, value: str) -> FieldError:
    return FieldError(ErrorType.DUPLICATE, field, "", value)


def too_many(field: str, max_items: int) -> FieldError:
    return FieldError(ErrorType.TOO_MANY, field, f"must have at most {max_items} items")


def too_long(field: str, max_bytes: int) -> FieldError:
    return FieldError(ErrorType.TOO_LONG, field, f"may not be more than {max_bytes} bytes")


def immutable(field: str, old: Any, new: Any) -> FieldErrors:
    """Return an error if the two values differ; absent and empty are equal."""
    return [] if (old or None) == (new or None) else [invalid(field, new, "field is immutable")]


def distinct(errors: Iterable[FieldError]) -> FieldErrors:
    """Return each error once, because rules overlap."""
    return list(dict.fromkeys(errors))


class JobError(Exception):
    """The job can't be handled in its present state; trying again may help."""


class PendingJob(JobError):
    """There is no error, but something does not exist yet: nothing is reported."""


class CannotStart(JobError):
    """The pods can't run with their assignment, and never will: trying again does not help."""
