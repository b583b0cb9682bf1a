"""Submitted objects and the results of storing them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

from foundation.exceptions import ManifestErrors
from scheduling.manifest import ValidationReport

S = TypeVar("S")


class Action(StrEnum):
    """The result of an apply for one object."""

    CREATED = "created"
    CONFIGURED = "configured"
    UNCHANGED = "unchanged"
    PRUNED = "pruned"


@dataclass(frozen=True, slots=True)
class Submitted(Generic[S]):
    """A valid spec, and the report of its document, to which storing it adds errors and warnings."""

    spec: S
    report: ValidationReport
    api_version: str = ""
    path: str = ""
    """The path of the object in its document: empty, or `items[3]` in a List."""
    in_json: bool = False
    """Whether the document is our JSON, not a manifest."""

    def at(self, path: str) -> str:
        """Return the path of a field in the object's document."""
        return f"{self.path}.{path}" if self.path and path else self.path or path


@dataclass(frozen=True, slots=True)
class Applied:
    """An object and the result of its apply."""

    kind: str
    namespace: str
    name: str
    action: Action
    warnings: tuple[str, ...] = ()


def refuse_mistakes(submissions: Iterable[Submitted[S]]) -> None:
    """Raise `ManifestErrors` if any report has errors."""
    reports: dict[int, ValidationReport] = {id(submitted.report): submitted.report for submitted in submissions}
    refuse_errors(list(reports.values()))


def refuse_errors(reports: Sequence[ValidationReport]) -> None:
    """Raise `ManifestErrors` with the errors of all reports, in the order of their documents."""
    errors = [error for report in reports for error in report.errors]
    if errors:
        raise ManifestErrors(sorted(errors, key=lambda error: error.document))
