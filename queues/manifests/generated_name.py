"""Names for objects that request one with `generateName`."""

import secrets
from typing import Final

_CHARACTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
"""Kubernetes' alphabet: no vowels, which could form words, and no look-alikes."""
_LENGTH: Final = 5
_MAX_LENGTH: Final = 253


def generated_name(prefix: str) -> str:
    """Return the prefix, cut so that the whole stays a legal name, and five random characters."""
    return prefix[: _MAX_LENGTH - _LENGTH] + "".join(secrets.choice(_CHARACTERS) for _ in range(_LENGTH))
