"""A small made-up trace: bursts of pods on two nodes, of shapes with run times of their own."""

import numpy as np

from scheduling.estimates.trace_replay import TracePod


def small_trace(count: int = 260, seed: int = 5) -> list[TracePod]:
    """Return pods in the order of creation; a third of them waits on sixteen devices."""
    random = np.random.default_rng(seed)
    pods, now = [], 0
    for number in range(count):
        now += int(random.exponential(900 if number % 40 < 12 else 30))
        shape = int(random.integers(4))
        run = int(200 * 2**shape * np.exp(0.5 * random.standard_normal())) + 1
        devices = 8 if number % 50 == 7 else 1
        pods.append(TracePod(f"pod-{number:04d}", now, run, devices, (("shape", shape, devices), devices, "all")))
    return pods
