"""Kueue's Configuration, as it stands in its ConfigMap: each field acts, or is refused by its name."""

from __future__ import annotations

import json

import pytest

from accounts.kinds.feature_gates import DEPENDENCIES, GATES, Standing
from accounts.models import Cluster
from foundation.exceptions import ManifestErrors
from scheduler.store.configuration import cluster_configuration
from scheduling.manifest import LocatedError
from tests.manifest_texts import Apply

HEAD = "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\n"


def refused(apply: Apply, text: str) -> LocatedError:
    with pytest.raises(ManifestErrors) as refusal:
        apply(HEAD + text)
    [error] = refusal.value.errors
    return error


SHIPPED = """health: {healthProbeBindAddress: ":8081"}
metrics: {bindAddress: ":8443", enableClusterQueueResources: true}
webhook: {port: 9443}
leaderElection: {leaderElect: true, resourceName: c1f6bfd2.kueue.x-k8s.io, leaseDuration: 0s, resourceNamespace: ""}
controller: {groupKindConcurrency: {Job.batch: 5, Workload.kueue.x-k8s.io: 10}}
clientConnection: {qps: 300, burst: 500}
manageJobsWithoutQueueName: false
waitForPodsReady: {timeout: 10ms, recoveryTimeout: null, requeuingStrategy: {backoffLimitCount: null}}
integrations:
  frameworks: [batch/job, jobset.x-k8s.io/jobset, statefulset]
  externalFrameworks: [Foo.v1.example.com]
  labelKeysToCopy: [team]
multiKueue: {gcInterval: null, origin: here, workerLostTimeout: 15m}
tls: {minVersion: VersionTLS12, cipherSuites: [TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256]}
visibilityServer: {bindPort: 9444}
internalCertManagement: {enable: true}
featureGates: {LocalQueueMetrics: true, ConcurrentAdmission: true, MultiKueueManagerQuotaAutomation: true}
"""


def test_what_kueue_ships_is_taken_without_a_word(apply: Apply, cluster: Cluster) -> None:
    [applied] = apply(HEAD + SHIPPED).objects
    assert applied.warnings == ()
    cluster.refresh_from_db()
    assert cluster.configuration["visibilityServer"] == {"bindPort": 9444}


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("leaderElection: {leaderElect: false}", "leaderElection.leaderElect"),
        ("webhook: {certDir: /certs}", "webhook.certDir"),
        ("webhook: {port: 70000}", "webhook.port"),
        ("pprofBindAddress: ':8083'", "pprofBindAddress"),
        ("visibilityServer: {bindPort: 0}", "visibilityServer.bindPort"),
        ("visibilityServer: {bindAddress: here}", "visibilityServer.bindAddress"),
        ("internalCertManagement: {webhookServiceName: other}", "internalCertManagement.webhookServiceName"),
        ("internalCertManagement: {webhookSecretName: other}", "internalCertManagement.webhookSecretName"),
        ("tls: {minVersion: VersionTLS11}", "tls.minVersion"),
        ("tls: {cipherSuites: [TLS_RSA_WITH_RC4_128_SHA]}", "tls.cipherSuites"),
        ("tls: {minVersion: VersionTLS13, cipherSuites: [TLS_AES_128_GCM_SHA256]}", "tls.cipherSuites"),
        ("tls: {curvePreferences: [29]}", "tls.curvePreferences"),
        ("clientConnection: {qps: 0}", "clientConnection.qps"),
        ("clientConnection: {qps: fast}", "clientConnection.qps"),
        ("integrations: {externalFrameworks: [Foo]}", "integrations.externalFrameworks"),
        ("integrations: {externalFrameworks: [Job.v1.batch]}", "integrations.externalFrameworks"),
        ("multiKueue: {externalFrameworks: [{name: Foo.v1.example.com}]}", "multiKueue.externalFrameworks"),
        ("multiKueue: {clusterProfile: {accessProviders: [{name: a}]}}", "multiKueue.clusterProfile"),
        ("metrics: {customLabels: [{name: 1st}]}", "metrics.customLabels[0].name"),
        ("metrics: {customLabels: [{name: a}, {name: a}]}", "metrics.customLabels[1].name"),
        (
            "metrics: {customLabels: [{name: a, sourceLabelKey: b, sourceAnnotationKey: c}]}",
            "metrics.customLabels[0].sourceLabelKey",
        ),
        ("metrics: {customLabels: [{name: a, sourceKind: Workload}]}", "metrics.customLabels[0].trackedValues"),
        ("metrics: {customLabels: [{name: a, sourceKind: Pod}]}", "metrics.customLabels[0].sourceKind"),
        (f"metrics: {{customLabels: [{', '.join(f'{{name: a{n}}}' for n in range(7))}]}}", "metrics.customLabels"),
        ("featureGates: {NoSuchGate: true}", "featureGates.NoSuchGate"),
        (
            "featureGates: {KueueDRAIntegration: false, KueueDRAIntegrationConsumableCapacity: true}",
            "featureGates.KueueDRAIntegrationConsumableCapacity",
        ),
        (
            "featureGates: {KueueDRAIntegration: false, KueueDRAIntegrationPartitionableDevices: true}",
            "featureGates.KueueDRAIntegrationPartitionableDevices",
        ),
    ],
)
def test_what_does_not_act_here_is_refused_by_its_name(apply: Apply, text: str, path: str) -> None:
    assert refused(apply, text).path == path


@pytest.mark.parametrize("name", sorted(GATES))
@pytest.mark.parametrize("value", [True, False])
def test_a_gate_acts_or_is_refused(apply: Apply, cluster: Cluster, name: str, value: bool) -> None:
    """A gate that is always on here can't be switched off, and one that is always off can't be switched on."""
    text = f"featureGates: {json.dumps({name: value})}"
    if GATES[name].allows(on=value):
        [applied] = apply(HEAD + text).objects
        assert applied.warnings == ()
        cluster.refresh_from_db()
        assert cluster.configuration["featureGates"] == {name: value}
    else:
        error = refused(apply, text)
        word = "on" if GATES[name].standing is Standing.ALWAYS_ON else "off"
        assert (error.path, error.rule.rpartition(": ")[2]) == (
            f"featureGates.{name}",
            f"the feature is always {word} here",
        )


@pytest.mark.parametrize(("name", "above"), sorted(DEPENDENCIES.items()))
def test_a_gate_goes_off_together_with_the_one_that_it_depends_on(apply: Apply, name: str, above: str) -> None:
    [applied] = apply(f"{HEAD}featureGates: {{{above}: false, {name}: false}}").objects
    assert applied.action == "created"


def config_map(configuration: str) -> str:
    """The ConfigMap that Kueue's Deployment mounts."""
    data = {"controller_manager_config.yaml": configuration}
    metadata = {"name": "kueue-manager-config", "namespace": "kueue-system"}
    return json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})


def test_the_config_map_of_kueue_is_taken_as_the_configuration_in_it(apply: Apply, cluster: Cluster) -> None:
    [applied] = apply(config_map(HEAD + SHIPPED)).objects
    assert (applied.kind, applied.action) == ("Configuration", "created")
    cluster.refresh_from_db()
    assert cluster.configuration["integrations"]["labelKeysToCopy"] == ["team"]


def test_a_mistake_in_the_config_map_has_its_place_in_it(apply: Apply) -> None:
    with pytest.raises(ManifestErrors) as refusal:
        apply(config_map(f"{HEAD}webhook: {{port: 0}}"))
    [error] = refusal.value.errors
    assert error.path == "data[controller_manager_config.yaml].webhook.port"
    with pytest.raises(ManifestErrors) as refusal:
        apply(config_map("kind: [open"))
    assert refusal.value.errors[0].path == "data[controller_manager_config.yaml]"


def _mapping(*sources: str, gate: bool = True) -> str:
    mapping = f"{{name: gpu.memory, deviceClassNames: [gpu.example.com], sources: [{', '.join(sources)}]}}"
    on = "true" if gate else "false"
    gates = f"featureGates: {{KueueDRAIntegrationConsumableCapacity: {on}}}"
    return f"{gates}\nresources: {{deviceClassMappings: [{mapping}]}}"


def _source(kind: str = "capacity", name: str = "memory") -> str:
    return f"{{{kind}: {{name: {name}, driver: gpu.example.com, deviceSelector: {{cel: {{expression: 'true'}}}}}}}}"


@pytest.mark.parametrize(
    ("text", "field"),
    [
        (_mapping(_source(), gate=False), "sources[0].capacity"),
        (_mapping(_source(name="1st")), "sources[0].capacity.name"),
        (_mapping(_source(name="a" * 33)), "sources[0].capacity.name"),
        (_mapping(_source(name="-/memory")), "sources[0].capacity.name"),
        (_mapping(_source(), _source("counter")), "sources"),
        (_mapping("{}"), "sources[0].counter"),
        (_mapping("{capacity: {name: memory, driver: gpu.example.com}}"), "sources[0].capacity.deviceSelector"),
    ],
)
def test_a_source_of_capacity_that_cannot_count_is_refused(apply: Apply, text: str, field: str) -> None:
    assert refused(apply, text).path == f"resources.deviceClassMappings[0].{field}"


def test_sources_of_capacity_are_read(apply: Apply, cluster: Cluster) -> None:
    apply(HEAD + _mapping(_source(), _source(name="example.com/compute")))
    cluster.refresh_from_db()
    (mapping,) = cluster_configuration(cluster).device_class_mappings
    assert [(each.driver, each.name, each.selector) for each in mapping.capacities] == [
        ("gpu.example.com", "memory", "true"),
        ("gpu.example.com", "example.com/compute", "true"),
    ]
