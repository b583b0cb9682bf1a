"""How long an apply of 1,000 documents takes: `pytest tests/benchmarks/test_apply.py -s`.

Prints seconds, and the ratio to what reading the same text with PyYAML's safe loader alone takes.
"""

import time
from collections.abc import Callable

import pytest
import yaml

from accounts.models import Cluster
from clusters.manifests import apply_manifests
from tests import manifest_texts as texts

DOCUMENTS = 1000
MAKERS: dict[str, Callable[[str], str]] = {
    "workloads": texts.workload,
    "jobs": texts.job,
    "cluster queues": texts.cluster_queue,
}


def seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


@pytest.mark.django_db
@pytest.mark.parametrize("kind", MAKERS)
def test_apply(kind: str) -> None:
    cluster = Cluster.objects.create(name="default")
    text = texts.joined(*(MAKERS[kind](f"name-{number}") for number in range(DOCUMENTS)))
    reading = seconds(lambda: list(yaml.load_all(text, Loader=yaml.CSafeLoader)))
    new = seconds(lambda: apply_manifests(cluster, text, user=None))
    unchanged = seconds(lambda: apply_manifests(cluster, text, user=None))
    print(
        f"\n{DOCUMENTS} {kind}: new {new:.2f} s ({new / reading:.1f} x reading the text), "
        f"unchanged {unchanged:.2f} s ({unchanged / reading:.1f} x)"
    )
