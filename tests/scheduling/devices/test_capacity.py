"""A flavor's promises beside what its nodes have."""

from __future__ import annotations

from dataclasses import replace

from scheduling.devices.capacity import flavor_capacity
from scheduling.model.node import Node
from scheduling.model.quantity import NANOS
from scheduling.model.resource_flavor import ResourceFlavor
from scheduling.model.resources import Transformation
from scheduling.model.vendor import NVIDIA
from scheduling.model.vocabulary import TransformationStrategy
from tests.scheduling.device_worlds import GPU, MEMORY, gpu_node


def test_promises_are_held_against_the_nodes_that_the_flavor_reaches() -> None:
    flavor = ResourceFlavor("gpu", {"gpu": "on"})
    nodes = [
        replace(gpu_node("a", 2, gpu="on"), foreign_usage={"cpu": 1000}),
        gpu_node("b", gpu="on"),
        Node("c", allocatable={"cpu": 1_000_000}),
    ]
    found = flavor_capacity(flavor, nodes, {"cpu": 129_000, GPU: 30, MEMORY: 49_153, "example.com/x": 1}, [NVIDIA])
    assert [
        (each.resource, each.promised, each.allocatable, each.used_by_others, each.is_exceeded) for each in found
    ] == [
        ("cpu", 129_000, 128_000, 1000, True),
        ("example.com/x", 1, 0, 0, True),
        (GPU, 30, 30, 0, False),
        (MEMORY, 49_153, 49_152, 0, True),
    ]


def test_what_transformations_make_is_there_as_far_as_the_nodes_have_what_it_is_made_of() -> None:
    total = "nvidia.com/total-gpumem"
    rules = [Transformation(MEMORY, TransformationStrategy.REPLACE, GPU, {total: 2 * NANOS})]
    nodes = [gpu_node("a", 2, gpu="on"), gpu_node("b", gpu="on")]
    promised = {total: 98_304, "example.com/typo": 1}
    typo, found = flavor_capacity(ResourceFlavor("gpu", {"gpu": "on"}), nodes, promised, [NVIDIA], rules)
    assert (found.resource, found.allocatable, found.is_exceeded) == (total, 98_304, False)
    assert (typo.allocatable, typo.is_exceeded) == (0, True)
