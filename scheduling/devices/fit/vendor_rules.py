"""The checks of single cards that only some vendors make: split modes, families, hardware profiles, tenants."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from scheduling.devices.fit.device_state import Tenant
from scheduling.devices.requests.requests import ONLINE
from scheduling.model.device import HAMI_CORE_MODE, QOS_POLICY, SOFT_SPLIT, SPLIT, Device, DeviceRequest, DeviceSlice
from scheduling.model.device import MigProfile as Profile
from scheduling.model.placement import DeviceConstraints, DeviceRefusal
from scheduling.model.vendor import FitRules

ALONE, WITH_OFFLINE, WITH_ONLINE = 20, -20, -100
"""How well a card suits a pod of an application class, by who is on it."""


def in_wanted_mode(device: Device, rules: FitRules, constraints: DeviceConstraints) -> bool:
    """Whether a card, of a vendor that knows two ways of splitting, is split the way that the pod asks for (Ascend)."""
    split = device.attributes.get(SPLIT)
    soft = rules.soft_split if split is None else split == SOFT_SPLIT
    return soft == (constraints.mode == HAMI_CORE_MODE)


def gives_count(device: Device, rules: FitRules, count: int) -> bool:
    """Whether cards of the device's family are given in such numbers (AWS Neuron)."""
    family = device.attributes.get(rules.family_attribute, "")
    return all(count in counts for prefix, counts in rules.family_counts if family.startswith(prefix))


def profile_for(request: DeviceRequest, profiles: Iterable[Profile]) -> Profile | None:
    """The smallest profile with at least the memory, the cores and the slots that are asked for; None if none has."""
    enough = (
        profile
        for profile in profiles
        if profile.memory_mib >= request.memory_mib
        and profile.cores_percent >= request.cores_percent
        and profile.slice_count >= request.slots
    )
    return min(enough, key=lambda profile: (profile.slice_count, profile.memory_mib), default=None)


def in_profile(
    part: DeviceSlice, request: DeviceRequest, device: Device, used_slots: int, used_memory_mib: int
) -> DeviceSlice | DeviceRefusal:
    """The slice as large as the profile that serves the request on a card of which so much is used."""
    profile = profile_for(request, device.mig_profiles)
    if profile is None:
        return DeviceRefusal.CARD_NOT_FOUND_CUSTOM_FILTER_RULE
    if used_slots + profile.slice_count > device.slots:
        return DeviceRefusal.CARD_TIME_SLICING_EXHAUSTED
    if used_memory_mib + profile.memory_mib > device.memory_mib:
        return DeviceRefusal.CARD_INSUFFICIENT_MEMORY
    return replace(part, memory_mib=profile.memory_mib, cores_percent=profile.cores_percent, slots=profile.slice_count)


def tenant_refusal(
    device: Device, in_use: bool, tenants: Collection[Tenant], constraints: DeviceConstraints
) -> DeviceRefusal | None:
    """Why the pod may not join the tenants of a card, if it may not (MetaX sGPU).

    A card in use serves one QoS policy: that of its tenants, or what its node says where they are not known; online
    pods have none. Pods of an application class may be suspended for one another, so they share cards among themselves
    only.
    """
    if not in_use:
        return None
    if tenants and any(bool(tenant.app_class) != bool(constraints.app_class) for tenant in tenants):
        return DeviceRefusal.CARD_APP_CLASS_MISMATCH
    policies = {tenant.qos_policy for tenant in tenants if tenant.qos_policy}
    current = policies or {device.attributes.get(QOS_POLICY, "")} - {""}
    if constraints.qos_policy and current - {constraints.qos_policy}:
        return DeviceRefusal.CARD_QOS_POLICY_MISMATCH
    return None


def app_class_score(app_class: str, tenants: Iterable[Tenant]) -> int:
    """How well a card suits a pod of an application class.

    An online pod runs best alone, suspends offline tenants and competes with online ones; an offline pod is suspended
    by an online one, and leaves empty cards to others where offline ones have room.
    """
    classes = {tenant.app_class for tenant in tenants}
    if ONLINE in classes:
        return WITH_ONLINE
    if app_class == ONLINE:
        return WITH_OFFLINE if classes else ALONE
    return ALONE if classes else WITH_OFFLINE
