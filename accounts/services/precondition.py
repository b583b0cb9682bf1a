"""Preconditions of writes: a write is refused if the object changed since its writer read it."""

from dataclasses import dataclass

from foundation.exceptions import PreconditionFailed, PreconditionRequired
from scheduling.manifest import LocatedError


def etag(generation: int | str) -> str:
    """Return the ETag of an object of this generation, or of settings of this version."""
    return f'"{generation}"'


@dataclass(frozen=True)
class Precondition:
    """The generations that a write is meant for. `tags` is empty for `*`: any generation of an existing object."""

    tags: frozenset[str] = frozenset()
    field: str = "If-Match"
    """The place of the precondition in the request: the header, or `generation` in the body."""

    def check(self, kind: str, key: str, generation: int | str | None, changed_by: str = "") -> None:
        """Raise `PreconditionFailed` unless the object is the one that was read. `generation` was read under the
        object's lock; None if it does not exist. `changed_by` is its last editor."""
        if generation is None:
            rule = f"{kind} {key} does not exist"
            remedy = f"Leave {self.field} out to create it."
        elif self.tags and str(generation) not in self.tags:
            by_whom = f" by {changed_by}" if changed_by else ""
            rule = f"{kind} {key} has been changed{by_whom} since it was read: its generation is {generation} now"
            remedy = (
                'Apply your change to the present state, which is in "current", and send it with If-Match: '
                f"{etag(generation)}."
            )
        else:
            return
        value = ", ".join(f'"{tag}"' for tag in sorted(self.tags)) or "*"
        error = LocatedError(0, self.field, value, rule, remedy, PreconditionFailed.reason)
        raise PreconditionFailed(f"Nothing was stored: {self.field} is {value}, and {rule}. {remedy}", [error])


def require_precondition(kind: str, key: str, generation: int) -> None:
    """Raise `PreconditionRequired` for a write without a precondition that would replace an object of this
    generation."""
    rule = f"{kind} {key} exists, and this request could overwrite another user's changes"
    remedy = (
        f"Read it, and send its ETag with the write: If-Match: {etag(generation)}. If-Match: * overwrites any version."
    )
    error = LocatedError(0, "If-Match", None, rule, remedy, PreconditionRequired.reason)
    raise PreconditionRequired(f"Nothing was stored: {rule}. {remedy}", [error])
