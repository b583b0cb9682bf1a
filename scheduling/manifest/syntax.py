"""Kubernetes' rules for names, labels and label values. Each function returns the violated rule, or None."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

Syntax = Callable[[str], str | None]

_LABEL = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?", re.ASCII)
_SUBDOMAIN = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*", re.ASCII)
_NAME_PART = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?", re.ASCII)
_MAX_LABEL = 63
_MAX_SUBDOMAIN = 253


@lru_cache(maxsize=16384)
def dns_label(text: str) -> str | None:
    """Check an RFC 1123 label: namespaces, pod sets, containers."""
    if len(text) > _MAX_LABEL:
        return f"must have at most {_MAX_LABEL} characters, has {len(text)}"
    if not _LABEL.fullmatch(text):
        return "must be lower-case letters, digits and '-', starting and ending with a letter or digit"
    return None


@lru_cache(maxsize=16384)
def dns_subdomain(text: str) -> str | None:
    """Check an RFC 1123 subdomain: most object names."""
    if len(text) > _MAX_SUBDOMAIN:
        return f"must have at most {_MAX_SUBDOMAIN} characters, has {len(text)}"
    if not _SUBDOMAIN.fullmatch(text):
        return "must be lower-case letters, digits, '-' and '.', each part starting and ending with a letter or digit"
    return None


@lru_cache(maxsize=16384)
def qualified_name(text: str) -> str | None:
    """Check a label key or resource name: `name` or `prefix/name`."""
    prefix, slash, name = text.rpartition("/")
    if slash and dns_subdomain(prefix) is not None:
        return f'its prefix "{prefix}" {dns_subdomain(prefix)}'
    if not name or len(name) > _MAX_LABEL or not _NAME_PART.fullmatch(name):
        return (
            "must be at most 63 letters, digits, '-', '_' and '.', starting and ending with a letter or digit, "
            "after an optional DNS prefix and '/'"
        )
    return None


@lru_cache(maxsize=16384)
def label_value(text: str) -> str | None:
    """Check a label's value, which may be empty."""
    if len(text) > _MAX_LABEL:
        return f"must have at most {_MAX_LABEL} characters, has {len(text)}"
    if text and not _NAME_PART.fullmatch(text):
        return "must be letters, digits, '-', '_' and '.', starting and ending with a letter or digit, or empty"
    return None


def generate_name_prefix(text: str) -> str | None:
    """Check a `generateName` prefix: with five random characters it must be a valid name."""
    return dns_subdomain(f"{text}x")
