"""The violations that the auditor finds."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from django.db import connection


class Check(StrEnum):
    STATE = "state"
    """A workload's status and times match its conditions."""
    REFERENCES = "references"
    """The ClusterQueue and flavors of an admission exist, and so does the job of a pushed workload."""
    USAGE = "usage"
    """An admission is charged as it was decided."""
    QUOTA = "quota"
    """Quota is charged for reservations, and for all of them."""
    COUNTERS = "device-counters"
    """The counters of a device are the sums of its slices."""
    SLICES = "slices"
    """Every decided slice belongs to a workload that holds quota, is where its pod is, and matches the decision."""
    NODES = "nodes"
    """No node has more pods assigned than fit."""
    PODS = "pods"
    """Every pod of kueueweb's belongs to a workload that holds its resources, and runs on its assigned node."""
    TOLD = "told"
    """Every decision has been pushed to the cluster, and no later one."""
    ENDING = "ending"
    """A workload whose job and pods are deleted has ended."""


@dataclass(frozen=True, slots=True)
class Violation:
    """A rule that does not hold for an object."""

    check: Check
    subject: str
    message: str
    namespace: str = ""
    node: str = ""
    key: int = 0
    """The primary key of the row to repair, if any."""


def query(statement: str, parameters: list[Any]) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        return list(cursor.fetchall())


def namespace_of(key: str) -> str:
    return key.partition("/")[0]
