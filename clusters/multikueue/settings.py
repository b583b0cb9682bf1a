"""The MultiKueue settings of a Configuration, with Kueue's defaults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from accounts.kinds.configuration import DISPATCHERS
from accounts.kinds.feature_gates import DISPATCH_IN_ORDER, DISPATCH_STEPS, is_on
from scheduling.model.times import duration_seconds

_NAMESPACE: Final = "kueue-system"


@dataclass(frozen=True, slots=True)
class Settings:
    """* origin: the value of the label kueue.x-k8s.io/multikueue-origin on the objects that a manager creates in its
      workers.
    * lost_seconds: how long a worker that runs a workload may be unreachable.
    * incremental, step: nominate at most this many workers at a time.
    * namespace: the namespace of the Secrets with kubeconfigs.
    * in_order: nominate workers in the order of the MultiKueueConfig, not of their names.
    """

    origin: str = "multikueue"
    lost_seconds: float = 900.0
    incremental: bool = False
    step: int = 3
    namespace: str = _NAMESPACE
    in_order: bool = True


_DEFAULTS: Final = Settings()


def read_settings(configuration: Mapping[str, Any]) -> Settings:
    """Read the settings of a stored Configuration."""
    block = configuration.get("multiKueue") or {}
    dispatch = block.get("incrementalDispatcherConfig") if is_on(configuration, DISPATCH_STEPS) else None
    lost, step = block.get("workerLostTimeout"), (dispatch or {}).get("stepSize")
    return Settings(
        origin=block.get("origin") or _DEFAULTS.origin,
        lost_seconds=duration_seconds(lost) if lost else _DEFAULTS.lost_seconds,
        incremental=block.get("dispatcherName") == DISPATCHERS[1],
        step=step or _DEFAULTS.step,
        namespace=configuration.get("namespace") or _NAMESPACE,
        in_order=is_on(configuration, DISPATCH_IN_ORDER),
    )
