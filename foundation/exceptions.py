"""The errors of requests about queues; each has a stable `reason` that clients may test for."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from scheduling.manifest import LocatedError as LocatedError


class KueuewebError(Exception):
    """The root of the tree. `reason` never changes; `message` is for people and may."""

    reason: ClassVar[str] = "Error"

    def __init__(self, message: str, errors: Sequence[LocatedError] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.errors: tuple[LocatedError, ...] = tuple(errors)


class NotPermitted(KueuewebError):
    """The user may see the object, but may not perform this action."""

    reason = "NotPermitted"


class NotFound(KueuewebError):
    """The object does not exist, or the user may not see it."""

    reason = "NotFound"


class Conflict(KueuewebError):
    """The object is not in a state that allows this."""

    reason = "Conflict"


class AlreadyExists(Conflict):
    """An object of that kind and name exists already."""

    reason = "AlreadyExists"


class MirroredFromCluster(Conflict):
    """The object mirrors a cluster in which another scheduler decides: change it in that cluster."""

    reason = "MirroredFromCluster"


class PreconditionFailed(KueuewebError):
    """The object has changed since the writer read it. `current` is the present object, None if it is absent."""

    reason = "PreconditionFailed"
    current: Mapping[str, Any] | None = None


class PreconditionRequired(KueuewebError):
    """A write that would replace changes of others, without a precondition."""

    reason = "PreconditionRequired"
    current: Mapping[str, Any] | None = None


class LimitReached(KueuewebError):
    """A limit per tenant. `retry_after` is when to try again, in seconds; None where waiting alone does not help."""

    reason = "LimitReached"

    def __init__(self, message: str, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Unavailable(KueuewebError):
    """A service that is needed for the answer does not respond. `retry_after` is when to try again, in seconds."""

    reason = "Unavailable"
    retry_after: ClassVar[int | None] = None


class InvalidRequest(KueuewebError):
    """A parameter or a body that the operation does not accept."""

    reason = "Invalid"


class ManifestErrors(InvalidRequest):
    """Documents that cannot be stored, with every mistake located. Nothing of the call is stored."""

    reason = "InvalidManifest"

    def __init__(self, errors: Sequence[LocatedError], message: str = "") -> None:
        count = len(errors)
        first = f" The first: {errors[0]}" if errors else ""
        super().__init__(message or f"{count} mistake{'' if count == 1 else 's'}; nothing was stored.{first}", errors)


class UnsupportedKind(ManifestErrors):
    """A kind that is known, or not, but not taken."""

    reason = "UnsupportedKind"


class HostileManifest(ManifestErrors):
    """YAML that is too large, too deep or uses tags."""

    reason = "HostileManifest"


class ManifestTooLarge(HostileManifest):
    """The manifest has more bytes than one call may have."""

    reason = "TooLarge"
