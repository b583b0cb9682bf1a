"""Sentences name units, and what they say does not contradict what was asked for."""

import pytest

from scheduling.model.quantity import amount_in_words
from tests.scheduling.fleet_helpers import ask, device, fleet, node, pod, pod_set


@pytest.mark.parametrize(
    ("resource", "amount", "words"),
    [
        ("cpu", 222, "0.222 cores"),
        ("cpu", 1000, "1 core"),
        ("cpu", 11_178, "11.178 cores"),
        ("cpu", 2**62, "4611686018427387 cores"),
        ("memory", 10 * 2**30, "10 GiB"),
        ("memory", 3 * 2**29, "1.5 GiB"),
        ("memory", 500, "500 bytes"),
        ("memory", 0, "0 bytes"),
        ("hugepages-2Mi", 2**21, "2 MiB"),
        ("nvidia.com/total-gpucores", 81, "81 %"),
        ("nvidia.com/gpumem", 8000, "8000 MiB"),
        ("nvidia.com/gpu", 2, "2"),
    ],
)
def test_an_amount_has_its_unit(resource: str, amount: int, words: str) -> None:
    assert amount_in_words(resource, amount) == words


def test_a_card_that_is_short_of_memory_has_less_free_than_was_asked_for() -> None:
    """A node whose best card had 55,296 MiB free was short of memory for a request of 18,176 MiB."""
    used = {"a0": (1, 1000, 80), "a1": (1, 1000, 60), "a2": (1, 9000, 0)}
    nodes = fleet(node("n1", [device(f"a{n}") for n in range(3)], used))
    refused = nodes.place([pod_set(pod(ask(1, 4000, cores=50)))])
    assert "2 are short of cores (at most 40 % of the cores free on one of them)" in str(refused)
    assert "1 is short of memory (at most 1000 MiB free on one of them)" in str(refused)
