"""Kueue's own program in its own place: the control of a run."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import yaml

from tests.kubernetes.real_kueue import RealKueue
from tests.kueue_suite.plane import CONFIGURATION_KEY, AggregatedPlane


@contextlib.contextmanager
def kueue(plane: AggregatedPlane, source: Path, program: Path, folder: Path) -> Iterator[Kueue]:
    """Kueue decides, and serves its visibility API."""
    real = RealKueue(plane, folder, binary=program, source=source, serves_visibility=True)
    real.install()
    decider = Kueue(plane, real)
    try:
        decider.configure()
        yield decider
    finally:
        real.stop()


class Kueue:
    """A Kueue that starts anew when it is configured, as its Deployment does."""

    def __init__(self, plane: AggregatedPlane, real: RealKueue) -> None:
        self._plane = plane
        self._real = real
        self.metrics = real.metrics

    def configure(self) -> None:
        self._real.stop()
        self._real.start(yaml.safe_load(self._plane.stored_configuration()["data"][CONFIGURATION_KEY]))
