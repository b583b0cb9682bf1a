"""MetaX: whole GPUs scored by the node's own tables, and shared GPUs (sGPU) with QoS policies and application
classes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from scheduling.devices.fit.device_fit import DeviceFit
from scheduling.devices.fit.device_state import DeviceState, Pick, Tenant
from scheduling.devices.fit.groups import by_attribute, taken_from
from scheduling.devices.fit.outcome import Outcome, attributes_of
from scheduling.devices.requests.policy import Policy
from scheduling.devices.requests.requests import OFFLINE, ONLINE
from scheduling.model.device import QOS_POLICY, DeviceSlice
from scheduling.model.node import CountScores
from scheduling.model.placement import DeviceConstraints, DeviceRefusal
from scheduling.model.vendor import DeviceVendor

COUNT_TABLE_TOP = 2000
"""A table's loss or score is subtracted from this."""
TENANTS_WEIGHT = 10_000
"""Large enough to outweigh the node's own score under any policy."""
WHOLE = 100
_LINK = 10
"""The score of a pair of devices in one link zone."""


@dataclass(slots=True)
class SgpuFit(DeviceFit):
    """A device in use serves one QoS policy, and a pod with an application class shares only with its own class.

    A pod with all cores of its devices gets devices of one link zone. An online pod holds no cores: it suspends the
    offline pods on its device.
    """

    @property
    def _online(self) -> bool:
        return self.constraints.app_class == ONLINE

    def collects_all(self, states: Sequence[DeviceState]) -> bool:
        """Return true: all fitting devices are examined, as in HAMi, whose refusals count all of them."""
        return True

    def choose(self, states: Sequence[DeviceState]) -> list[Pick] | None:
        """Choose devices that suit the application class, or whole devices of one zone; otherwise the first ones in
        order."""
        count = self.request.count
        if len(self.picks) > count and self._online:
            return sorted(self.picks, key=lambda pick: _discomfort(pick[0].tenants))[:count]
        if len(self.picks) > count and not self.constraints.app_class and self.request.cores_percent == WHOLE:
            return _of_one_zone(self.picks, count, self.rules.group_attribute)
        return self.picks[:count]

    def excluded(self, state: DeviceState) -> DeviceRefusal | None:
        """Return a refusal because of health, cordon, or the pods that share the device."""
        if not state.device.health:
            return DeviceRefusal.CARD_UNHEALTHY
        if state.device.cordoned:
            return DeviceRefusal.CARD_CORDONED
        if not state.used_slots:
            return None
        if not classes_go_together(self.constraints.app_class, state.tenants):
            return DeviceRefusal.CARD_APP_CLASS_MISMATCH
        if not self._online and self.request.cores_percent != WHOLE and not self._same_policy(state):
            return DeviceRefusal.CARD_QOS_POLICY_MISMATCH
        return None

    def cores_of(self, state: DeviceState) -> int | None:
        """Return the cores that the request takes of a device; none for an online pod."""
        return 0 if self._online else DeviceFit.cores_of(self, state)

    def refused_amounts(self, state: DeviceState, memory: int, cores: int | None) -> DeviceRefusal | None:
        """Return a refusal for too little memory or, unless the pod is online, too few cores."""
        if not self._online:
            return DeviceFit.refused_amounts(self, state, memory, cores)
        free = state.device.memory_mib - state.used_memory_mib
        return DeviceRefusal.CARD_INSUFFICIENT_MEMORY if free < memory else None

    def made(self, state: DeviceState, memory: int, cores: int) -> DeviceSlice | DeviceRefusal:
        """Return the slice with the pod's QoS policy and application class."""
        part = DeviceFit.made(self, state, memory, cores)
        if isinstance(part, DeviceRefusal):
            return part
        return replace(part, qos_policy=self.constraints.qos_policy, app_class=self.constraints.app_class)

    def hold(self, state: DeviceState, part: DeviceSlice) -> None:
        """Count the slice. HAMi does not see the class of the pod's own earlier containers."""
        state.hold(replace(part, app_class="") if self.rules.as_hami else part)

    def _same_policy(self, state: DeviceState) -> bool:
        """Return whether the device serves the pod's QoS policy, or none. The policy is that of its tenants, or the
        one its node states if they are unknown. A tenant with all cores has none."""
        known = [tenant for tenant in state.tenants if tenant.app_class != ONLINE]
        policies = {"" if tenant.whole else tenant.qos_policy for tenant in known}
        current = policies or {state.device.attributes.get(QOS_POLICY, "")}
        return current <= {"", self.constraints.qos_policy}


def classes_go_together(app_class: str, tenants: Collection[Tenant]) -> bool:
    """Return whether a pod may join a device's tenants, by their application classes. Pods with a class share only with
    pods of the same class. An offline pod on the same device as an online one would be suspended immediately."""
    classes = {tenant.app_class for tenant in tenants} - {""}
    if bool(classes) != bool(app_class):
        return False
    return not (ONLINE in classes and app_class == OFFLINE)


def _discomfort(tenants: Iterable[Tenant]) -> tuple[bool, int, int]:
    """Sort key of devices for an online pod: fewer online pods are better; devices with offline pods only come last."""
    classes = Counter(tenant.app_class for tenant in tenants)
    only_offline = classes[OFFLINE] > 0 and not classes[ONLINE]
    return (only_offline, classes[ONLINE], classes[OFFLINE])


def _of_one_zone(picks: Sequence[Pick], count: int, attribute: str) -> list[Pick]:
    """Devices of the smallest zone that has enough; otherwise of the smallest zones first. Devices without a zone
    come last."""
    zoned = [pick for pick in picks if attribute in pick[0].device.attributes]
    zones = sorted(by_attribute(zoned, attribute), key=len)
    for zone in zones:
        if len(zone) >= count:
            return zone[:count]
    return taken_from([*zones, [pick for pick in picks if attribute not in pick[0].device.attributes]], count)


def count_table_score(outcome: Outcome, vendor: DeviceVendor, _: DeviceConstraints) -> float:
    """Return the score in the node's own table for taking that many devices: 0 without a table, the best without an
    entry."""
    table = outcome.node.count_scores.get(vendor.common_word, CountScores())
    by_policy: Mapping[str, Mapping[int, int] | None] = {Policy.SPREAD: table.scores, Policy.BINPACK: table.losses}
    values = by_policy.get(outcome.node_policy)
    if values is None:
        return 0.0
    return float(COUNT_TABLE_TOP - values.get(len(outcome.slices(vendor.common_word)), 0))


def tenants_score(outcome: Outcome, vendor: DeviceVendor, constraints: DeviceConstraints) -> float:
    """Score how well the tenants suit an online pod, or how intact the link zones stay; inverted under `spread`."""
    held = outcome.slices(vendor.common_word)
    if constraints.app_class == ONLINE:
        score = _score_beside(outcome.states, {part.uuid for part in held})
    elif constraints.zones:
        score = _score_of_zones(outcome, vendor, {part.uuid for part in held if part.cores_percent == WHOLE})
    else:
        return 0.0
    return float(TENANTS_WEIGHT * (-score if outcome.node_policy == Policy.SPREAD else score))


def _score_beside(states: Iterable[DeviceState], taken: Collection[str]) -> int:
    """Return the cost of an online pod to others: it suspends offline pods and competes with online ones."""
    score = 0
    for state in states:
        if state.device.uuid not in taken:
            continue
        classes = Counter(tenant.app_class for tenant in state.tenants)
        if classes[OFFLINE] and not classes[ONLINE]:
            score -= 100 * classes[OFFLINE]
        else:
            score -= 20 * classes[ONLINE] + 2 * classes[OFFLINE]
    return score


def _score_of_zones(outcome: Outcome, vendor: DeviceVendor, taken: Collection[str]) -> int:
    """Ten times the links that the pod gets, minus those that it breaks."""
    if not taken:
        return 0
    zones = attributes_of(outcome.states, vendor.rules.group_attribute)
    available = [state.device.uuid for state in outcome.states if not state.used_slots]
    before, group = _links(available, zones), _links(taken, zones)
    rest = _links([uuid for uuid in available if uuid not in taken], zones)
    return 10 * group - (before - group - rest)


def _links(uuids: Iterable[str], zones: Mapping[str, str]) -> int:
    """Return the score of the pairs of these devices that share a zone."""
    return sum(_LINK for left, right in combinations(uuids, 2) if left in zones and zones[left] == zones.get(right))
