"""Which admission checks a workload needs."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from scheduling.model.cluster_queue import AdmissionCheckRule


def required_checks(rules: Sequence[AdmissionCheckRule], flavors: Collection[str]) -> list[str]:
    """The checks of a ClusterQueue for a workload that got these flavors, by name."""
    return sorted(rule.name for rule in rules if not rule.on_flavors or any(f in flavors for f in rule.on_flavors))
