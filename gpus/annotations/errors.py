"""Errors of reading annotations."""

from __future__ import annotations


class AnnotationError(ValueError):
    """An annotation's value is not in HAMi's format; the message names the error and its place."""
