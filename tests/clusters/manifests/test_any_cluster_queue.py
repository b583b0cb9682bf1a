"""Any ClusterQueue that is taken is stored, read back and applied again without a change."""

import pytest
from hypothesis import HealthCheck, given, settings

from accounts.models import Cluster
from clusters.manifests import apply_manifests, get_manifests, to_yaml
from queues.manifests.cluster_queue import ClusterQueueSpec, write_cluster_queue
from queues.models import ClusterQueue
from queues.services.configuration import objects, spec_of
from queues.services.kinds import KINDS
from tests.manifest_strategies import cluster_queues


@pytest.mark.django_db
@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(spec=cluster_queues())
def test_get_and_apply_change_nothing(cluster: Cluster, spec: ClusterQueueSpec) -> None:
    apply_manifests(cluster, to_yaml([write_cluster_queue(spec)]), user=None)
    kind = KINDS["ClusterQueue"]
    (row,) = objects(cluster, kind).filter(name=spec.meta.name)
    assert spec_of(kind, row) == spec
    text = to_yaml(get_manifests(cluster, "ClusterQueue", spec.meta.name))
    (again,) = apply_manifests(cluster, text, user=None).objects
    assert again.action == "unchanged"
    assert to_yaml(get_manifests(cluster, "ClusterQueue", spec.meta.name)) == text
    ClusterQueue.objects.all().delete()
