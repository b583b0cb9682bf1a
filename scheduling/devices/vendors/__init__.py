"""Rules of single vendors that differ from the common fit, one file per vendor. Differences that can be expressed as
data are in the vendor's row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from scheduling.devices.fit.device_fit import DeviceFit
from scheduling.devices.fit.outcome import Outcome, same_group_score
from scheduling.devices.vendors.ascend import AscendFit
from scheduling.devices.vendors.aws_neuron import NeuronFit
from scheduling.devices.vendors.enflame import DrsFit, GcuFit
from scheduling.devices.vendors.kunlun import VxpuFit, XpuFit, halves_score
from scheduling.devices.vendors.metax import SgpuFit, count_table_score, tenants_score
from scheduling.devices.vendors.nvidia import NvidiaFit
from scheduling.devices.vendors.vastai import VastaiFit, dies_score
from scheduling.model.placement import DeviceConstraints
from scheduling.model.vendor import DeviceVendor, FitKind, NodeScore

FITS: Mapping[FitKind, type[DeviceFit]] = {
    FitKind.COMMON: DeviceFit,
    FitKind.NVIDIA: NvidiaFit,
    FitKind.ASCEND: AscendFit,
    FitKind.VASTAI: VastaiFit,
    FitKind.METAX_SGPU: SgpuFit,
    FitKind.ENFLAME_GCU: GcuFit,
    FitKind.ENFLAME_DRS: DrsFit,
    FitKind.KUNLUN_XPU: XpuFit,
    FitKind.KUNLUN_VXPU: VxpuFit,
    FitKind.AWS_NEURON: NeuronFit,
}
"""The fit class for each kind that a vendor's rules name."""

NODE_SCORES: Mapping[NodeScore, Callable[[Outcome, DeviceVendor, DeviceConstraints], float]] = {
    NodeScore.SAME_GROUP: same_group_score,
    NodeScore.DIES: dies_score,
    NodeScore.HALVES: halves_score,
    NodeScore.COUNT_TABLE: count_table_score,
    NodeScore.TENANTS: tenants_score,
}
"""The node score function for each word in a vendor's rules."""


def vendor_score(outcome: Outcome, vendor: DeviceVendor, constraints: DeviceConstraints) -> float:
    """Return the vendor's part of the node's score (HAMi's ScoreNode); 0 if the pod gets none of its devices.

    It is added to the node's own score under every policy. With `spread`, where the lowest score wins, it counts
    against the node, except for vendors that invert theirs.
    """
    score = NODE_SCORES.get(vendor.rules.node_score)
    if score is None or not outcome.slices(vendor.common_word):
        return 0.0
    return score(outcome, vendor, constraints)
