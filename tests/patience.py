"""How long tests wait for another thread, process or server."""

from typing import Final

PATIENCE_SECONDS: Final = 120.0
"""Ends a test that would hang. It decides no outcome: a machine that stops for seconds must not fail a test."""
