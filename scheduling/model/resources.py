"""Requests: amounts per resource and per (flavor, resource), resource transformations, and the request of a pod set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from scheduling.model.pod import PodTemplate
from scheduling.model.quantity import NANOS, to_amount
from scheduling.model.vocabulary import TransformationStrategy

Amounts = Mapping[str, int]
"""Resource name -> base units (cpu in milli)."""

PODS = "pods"
"""The resource that counts pods. Only ClusterQueues that cover it charge it."""


class FlavorResource(NamedTuple):
    """A resource in a flavor: the unit of quota."""

    flavor: str
    resource: str


@dataclass(frozen=True, slots=True)
class Transformation:
    """One rule of Kueue's `resources.transformations`: `input` becomes `outputs`, each a factor in nano units.

    With `multiply_by` an output is multiplied by that resource's request too, where the pod has one.
    """

    input: str
    strategy: TransformationStrategy = TransformationStrategy.RETAIN
    multiply_by: str | None = None
    outputs: Mapping[str, int] = field(default_factory=dict)


def transform(requests: Mapping[str, int], transformations: Sequence[Transformation]) -> dict[str, int]:
    """Apply the transformations to a pod's requests (nano units in and out), each to the original requests.

    Outputs of several transformations add up. A negative result is set to zero.
    """
    rules = {rule.input: rule for rule in transformations}
    result: dict[str, int] = {}
    for name, value in requests.items():
        rule = rules.get(name)
        if rule is None or rule.strategy is TransformationStrategy.RETAIN:
            result[name] = result.get(name, 0) + value
        if rule is None:
            continue
        factor = requests.get(rule.multiply_by) if rule.multiply_by else None
        for output, share in rule.outputs.items():
            product = _multiply(share, value)
            if factor is not None:
                product = _multiply(product, factor)
            result[output] = result.get(output, 0) + product
    return {name: max(0, value) for name, value in result.items()}


def _multiply(left: int, right: int) -> int:
    return -(-left * right // NANOS)


def pod_requests(
    template: PodTemplate,
    transformations: Sequence[Transformation] = (),
    exclude_resource_prefixes: Sequence[str] = (),
) -> dict[str, int]:
    """Return the charge of one pod of the template, in base units: effective request, exclusions, transformations."""
    requests = template.effective_requests()
    if exclude_resource_prefixes:
        prefixes = tuple(exclude_resource_prefixes)
        requests = {name: value for name, value in requests.items() if not name.startswith(prefixes)}
    if transformations:
        requests = transform(requests, transformations)
    return {name: to_amount(name, max(0, value)) for name, value in requests.items()}
