"""The header If-Match (RFC 9110, section 13.1.1)."""

import re
from typing import Final

from rest_framework.request import Request

from accounts.services.precondition import Precondition
from foundation.exceptions import InvalidRequest
from scheduling.manifest import LocatedError, MistakeReason

_TAG: Final = r'(?:W/)?"([\x21\x23-\x7e\x80-\xff]*)"'
_TAGS: Final = re.compile(rf"\s*{_TAG}\s*(?:,\s*{_TAG}\s*)*")
_RULE: Final = "must be * or one or more entity tags in double quotes, with commas between them"
_REMEDY: Final = 'Send the ETag of the answer that you read, including its quotes: If-Match: "7".'


def if_match(request: Request) -> Precondition | None:
    """Return the precondition in the request's If-Match, None without one. Raises `InvalidRequest` if it is
    malformed."""
    header = request.headers.get("If-Match")
    if header is None:
        return None
    if header.strip() == "*":
        return Precondition()
    if not _TAGS.fullmatch(header):
        error = LocatedError(0, "If-Match", header, _RULE, _REMEDY, MistakeReason.MALFORMED)
        raise InvalidRequest(f"If-Match {header!r}: {_RULE}. {_REMEDY}", [error])
    # A proxy that compresses answers makes tags weak (W/"7"). Ours name a generation, not the bytes of an answer.
    return Precondition(frozenset(re.findall(_TAG, header)))
