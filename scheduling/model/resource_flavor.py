"""ResourceFlavor: one kind of nodes, and what a pod gets when it is admitted on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from scheduling.model.selectors import Taint, Toleration


@dataclass(frozen=True, slots=True)
class ResourceFlavor:
    """Kueue's ResourceFlavor. `tolerations` are added to the pods; `topology_name` makes it a flavor for topology-aware
    scheduling. `quota_only`: pods without devices that are admitted in it are not placed on nodes; quota alone decides.
    """

    name: str
    node_labels: Mapping[str, str] = field(default_factory=dict)
    node_taints: tuple[Taint, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    topology_name: str | None = None
    quota_only: bool = False
