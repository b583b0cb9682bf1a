"""The control plane of `tests/kubernetes`, and Helm, which `make test-helm` has built."""

from __future__ import annotations

import pytest

from tests.helm.chart import HELM
from tests.kubernetes.conftest import plane

__all__ = ["plane"]


@pytest.fixture(scope="session", autouse=True)
def _helm() -> None:
    assert HELM.exists(), "make test-helm builds Helm first"
