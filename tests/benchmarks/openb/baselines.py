"""The policies that placement is compared with: random, best fit and dot product, as published for the openb trace."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scheduling.devices.table import MEMORY_MIB, DeviceTable
from scheduling.model.node import CPU
from scheduling.model.placement import PodSetToPlace

CPU_MILLI_SCALE = 128_000
GPU_MILLI_SCALE = 8_000

Scores = NDArray[np.float64]
Booleans = NDArray[np.bool_]


@dataclass(slots=True)
class RandomChoice:
    """Any node that fits, any device that fits."""

    chance: random.Random

    def node_scores(self, table: DeviceTable, pod_set: PodSetToPlace, fitting: Booleans) -> Scores:
        """One of the fitting nodes gets 1."""
        scores = np.zeros(len(table.nodes))
        rows = np.flatnonzero(fitting)
        scores[rows[self.chance.randrange(len(rows))]] = 1
        return scores

    def device_scores(self, table: DeviceTable, row: int, pod_set: PodSetToPlace) -> Sequence[float]:
        """Devices in random order."""
        return [self.chance.random() for _ in table.nodes[row].devices]

    def basis(self) -> None:
        """Chance."""
        return


class BestFit:
    """The node with the least cpu and GPU left once the pod is there; scores 0 to 100, cut to integers."""

    def node_scores(self, table: DeviceTable, pod_set: PodSetToPlace, fitting: Booleans) -> Scores:
        """Normalised between the worst and the best of the fitting nodes."""
        cpu, gpu = demand(pod_set)
        left = 0.5 * (table.free_cpu - cpu) / CPU_MILLI_SCALE + 0.5 * (free_gpu(table) - gpu) / GPU_MILLI_SCALE
        most, least = left[fitting].max(), left[fitting].min()
        scores: Scores = np.floor(100 * (most - left) / (most - least) if most > least else np.zeros(len(left)))
        return scores

    def device_scores(self, table: DeviceTable, row: int, pod_set: PodSetToPlace) -> Sequence[float]:
        """The fullest device first."""
        used: list[int] = table.used[MEMORY_MIB, row, : len(table.nodes[row].devices)].tolist()
        return used

    def basis(self) -> str:
        """Nothing else."""
        return ""


class DotProduct(BestFit):
    """The node whose free cpu and GPU point least along what the pod asks for; scores 0 to 100, cut to integers."""

    def node_scores(self, table: DeviceTable, pod_set: PodSetToPlace, fitting: Booleans) -> Scores:
        """One less half the dot product of shares of the largest node."""
        cpu, gpu = demand(pod_set)
        product = (table.free_cpu / CPU_MILLI_SCALE) * (cpu / CPU_MILLI_SCALE)
        product += (free_gpu(table) / GPU_MILLI_SCALE) * (gpu / GPU_MILLI_SCALE)
        scores: Scores = np.floor(100 * (1 - product / 2))
        return scores


def free_gpu(table: DeviceTable) -> NDArray[np.int64]:
    """Free memory of all devices of every node; a device of the trace has 1,000."""
    free: NDArray[np.int64] = (table.totals[MEMORY_MIB] - table.used[MEMORY_MIB]).sum(axis=1)
    return free


def demand(pod_set: PodSetToPlace) -> tuple[int, int]:
    """What a pod of the trace asks for: cpu in milli, GPUs in thousandths."""
    requests = [request for container in pod_set.devices.containers for request in container]
    return pod_set.requests.get(CPU, 0), sum(request.count * request.memory_mib for request in requests)
