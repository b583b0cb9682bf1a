"""Converts device rows to values of the rules."""

from collections.abc import Mapping
from typing import Any

from gpus.models import Device as DeviceRow
from scheduling.model.device import Device, MigInstance, MigPlacement, MigProfile


def read_device(row: DeviceRow) -> Device:
    """Read the device of a row, as its node describes it."""
    return Device(
        uuid=row.uuid,
        index=row.index,
        vendor=row.vendor,
        type=row.type,
        slots=row.slots,
        memory_mib=row.memory_mib,
        cores_percent=row.cores_percent,
        numa=row.numa,
        mode=row.mode,
        health=row.healthy and row.missing_since is None,
        cordoned=row.cordoned or row.draining,
        mig_profiles=tuple(_mig_profile(fields) for fields in row.mig_profiles),
        pair_scores=row.pair_scores,
        attributes=row.custom_info,
    )


def _mig_profile(fields: Mapping[str, Any]) -> MigProfile:
    return MigProfile(
        name=fields["name"],
        memory_mib=fields["memory_mib"],
        cores_percent=fields.get("cores_percent", 0),
        slice_count=fields.get("slice_count", 1),
        placements=tuple(MigPlacement(place["start"], place["size"]) for place in fields.get("placements") or ()),
    )


def read_mig_instance(fields: Mapping[str, Any] | None) -> MigInstance | None:
    """Read a stored {profile, start, size}; None for a slice without a MIG instance."""
    return MigInstance(fields["profile"], MigPlacement(fields["start"], fields["size"])) if fields else None
