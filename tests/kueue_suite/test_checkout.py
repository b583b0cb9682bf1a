"""The helpers of Kueue's suites begin with the calls that replace them, wherever they stand in the file."""

from __future__ import annotations

import pytest

from tests.kueue_suite.checkout import replaced

_HELPERS = """
func RestartKueueController(ctx context.Context, kindClusterName string) {
\tscale()
}

func WaitForActivePodsAndTerminate(
\tctx context.Context,
\topts ...client.ListOption,
) {
\tcurl()
}

func waitForKueueAvailability(ctx context.Context) {
}

func waitForDeploymentAvailability(ctx context.Context) {
}

func GetKueueMetrics(ctx context.Context) (string, error) {
\treturn KExecute(ctx)
}

func GetClusterServerAddress(clusterName string) string {
\treturn "https://" + clusterName
}
"""


def test_each_helper_begins_with_its_call() -> None:
    found = replaced(_HELPERS)
    assert ") {\n\tif standsIn() { terminateInStandIn(" in found
    assert "(string, error) {\n\tif standsIn() { return metricsOfStandIn(ctx) }\n\treturn KExecute(ctx)" in found
    assert found.count("if standsIn()") == 6


def test_suites_without_a_helper_are_refused() -> None:
    with pytest.raises(ValueError, match="no helper GetKueueMetrics"):
        replaced(_HELPERS.replace("GetKueueMetrics", "ReadKueueMetrics"))
