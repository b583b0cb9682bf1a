"""What tests of apply and get share."""

from typing import Any

import pytest

from accounts.models import Cluster
from clusters.manifests import ApplyResult, apply_manifests
from tests.manifest_texts import Apply


@pytest.fixture
def cluster(db: None) -> Cluster:
    """An empty cluster."""
    return Cluster.objects.create(name="default")


@pytest.fixture
def apply(cluster: Cluster) -> Apply:
    """Apply a text to the cluster with all rights."""

    def apply_text(text: str, **options: Any) -> ApplyResult:
        return apply_manifests(cluster, text, user=None, **options)

    return apply_text
