"""ResourceFlavor: a kind of nodes, and the settings of pods admitted on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from scheduling.model.selectors import Taint, Toleration


@dataclass(frozen=True, slots=True)
class ResourceFlavor:
    """Kueue's ResourceFlavor. `tolerations` are added to the pods; `topology_name` enables topology-aware
    scheduling. `quota_only`: pods without devices are not placed on nodes in this flavor, so quota alone decides."""

    name: str
    node_labels: Mapping[str, str] = field(default_factory=dict)
    node_taints: tuple[Taint, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    topology_name: str | None = None
    quota_only: bool = False
