"""Any ClusterQueue that is taken is stored, read back and applied again without a change."""

import orjson
import pytest
from hypothesis import HealthCheck, given, settings

from accounts.models import Cluster
from clusters.manifests import apply_manifests, get_manifests, to_yaml
from kinds.declaration import KindSpec
from queues.kinds import KINDS
from queues.models import ClusterQueue
from queues.services.configuration import apply_json, objects
from tests.manifest_strategies import cluster_queues


@pytest.mark.django_db
@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(spec=cluster_queues())
def test_get_and_apply_change_nothing(cluster: Cluster, spec: KindSpec) -> None:
    kind = KINDS["ClusterQueue"]
    apply_manifests(cluster, to_yaml([kind.write(spec)]), user=None)
    (row,) = objects(cluster, kind).filter(name=spec.meta.name)
    assert kind.spec_of(row) == spec
    body = orjson.loads(orjson.dumps(kind.to_json(row)))
    assert apply_json(cluster, kind, body, name=row.name, actor="").action == "unchanged"
    text = to_yaml(get_manifests(cluster, "ClusterQueue", spec.meta.name))
    (again,) = apply_manifests(cluster, text, user=None).objects
    assert again.action == "unchanged"
    assert to_yaml(get_manifests(cluster, "ClusterQueue", spec.meta.name)) == text
    ClusterQueue.objects.all().delete()
