"""What is handed in to be stored, and what became of it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

from accounts.exceptions import ManifestErrors
from scheduling.manifest import ValidationReport

S = TypeVar("S")


class Action(StrEnum):
    """What an apply did to an object."""

    CREATED = "created"
    CONFIGURED = "configured"
    UNCHANGED = "unchanged"
    PRUNED = "pruned"


@dataclass(frozen=True, slots=True)
class Submitted(Generic[S]):
    """A spec that was read without a mistake, and the report of its document, which takes what storing it finds."""

    spec: S
    report: ValidationReport
    api_version: str = ""
    path: str = ""
    """Where the object begins in its document: empty, or `items[3]` in a List."""
    in_json: bool = False
    """Whether the document is our JSON, not a manifest."""

    def at(self, path: str) -> str:
        """The path of a field of the object in its document."""
        return f"{self.path}.{path}" if self.path and path else self.path or path


@dataclass(frozen=True, slots=True)
class Applied:
    """What became of one object."""

    kind: str
    namespace: str
    name: str
    action: Action
    warnings: tuple[str, ...] = ()


def refuse_mistakes(submissions: Iterable[Submitted[S]]) -> None:
    """Raises `ManifestErrors` if storing found a mistake in any of them."""
    reports: dict[int, ValidationReport] = {id(submitted.report): submitted.report for submitted in submissions}
    refuse_errors(list(reports.values()))


def refuse_errors(reports: Sequence[ValidationReport]) -> None:
    """Raises `ManifestErrors` with the mistakes of all the reports, in the order of their documents."""
    errors = [error for report in reports for error in report.errors]
    if errors:
        raise ManifestErrors(sorted(errors, key=lambda error: error.document))
