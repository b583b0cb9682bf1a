"""A tree of queues whose quotas include those below, as Cohorts and ClusterQueues, whose quotas do not (pure)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from clusters.manifests.translation.translated import JsonObject, Translation
from scheduling.manifest import MistakeReason
from scheduling.manifest.syntax import dns_subdomain
from scheduling.model.quantity import format_amount

API_VERSION: Final = "kueue.x-k8s.io/v1beta2"
ROOT: Final = "root"
FLAVOR: Final = "default"
POLICY: Final = "kueueweb.io/sharing-policy"
NODE_QUOTAS: Final = "kueueweb.io/node-quotas"
Amounts = dict[str, int]


@dataclass(slots=True)
class Branch:
    """A queue of another scheduler, and the queues below it.

    * quota: what it is promised, with its children's; limit: the most that it may hold, without a limit left out.
    * metadata, spec: what else its ClusterQueue or Cohort has.
    """

    name: str
    path: str
    parent: str = ROOT
    quota: Amounts = field(default_factory=dict)
    limit: Amounts = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    spec: JsonObject = field(default_factory=dict)
    children: list[Branch] = field(default_factory=list)

    def whole(self) -> Amounts:
        """Return, by resource, the larger of its quota and the sum of those below it."""
        below = self.below()
        return {name: max(self.quota.get(name, 0), below.get(name, 0)) for name in {**self.quota, **below}}

    def below(self) -> Amounts:
        """Return the quotas of its children together."""
        total: Amounts = {}
        for child in self.children:
            for name, amount in child.whole().items():
                total[name] = total.get(name, 0) + amount
        return total


def flavor() -> JsonObject:
    """Return the one ResourceFlavor."""
    return {"apiVersion": API_VERSION, "kind": "ResourceFlavor", "metadata": {"name": FLAVOR}, "spec": {}}


def root_cohort(policy: str, resources: Sequence[str], promised: Mapping[str, int]) -> JsonObject:
    """Return the Cohort that divides the capacity of the nodes, less `promised`: the nominal quotas of the queues below
    it. An empty policy leaves the division to Kueue's rules."""
    cells = [
        {"flavor": FLAVOR, "resource": name, "share": "100%", "headroom": format_amount(name, promised.get(name, 0))}
        for name in resources
    ]
    annotations = {**({POLICY: policy} if policy else {}), NODE_QUOTAS: json.dumps(cells)}
    zeros = [{"name": name, "nominalQuota": "0"} for name in resources]
    return {
        "apiVersion": API_VERSION,
        "kind": "Cohort",
        "metadata": {"name": ROOT, "annotations": annotations},
        "spec": {"resourceGroups": [quota_group(resources, zeros)]},
    }


def quota_group(resources: Sequence[str], cells: list[JsonObject]) -> JsonObject:
    """Return a resource group of the one flavor."""
    return {"coveredResources": [*resources], "flavors": [{"name": FLAVOR, "resources": cells}]}


def add_branches(made: Translation, branches: Sequence[Branch], resources: Sequence[str], policy: str) -> None:
    """Add the Cohorts and ClusterQueues of queues at the top to a translation, and the root and the flavor as shared
    manifests. Refuses a limit below the quota, and names that are not names in Kubernetes."""
    seen: set[str] = set()
    for branch in branches:
        _add(made, branch, resources, seen)
    total = Branch(ROOT, "", children=[*branches])
    made.shared += [flavor(), root_cohort(policy, resources, total.below())]
    if policy:
        made.keep("", f"the Cohort {ROOT} divides the capacity of the nodes ({policy})")


def _add(made: Translation, branch: Branch, resources: Sequence[str], seen: set[str]) -> None:
    if broken := dns_subdomain(branch.name):
        made.refuse(branch.path, branch.name, broken, "Rename the queue.")
    if branch.name in seen or branch.name == ROOT:
        rule = f'Duplicate value: as "{branch.name}"'
        made.refuse(branch.path, branch.name, rule, "Rename one of the two.", MistakeReason.DUPLICATE)
    seen.add(branch.name)
    whole, below = branch.whole(), branch.below()
    cells: list[JsonObject] = []
    for name in resources:
        nominal = whole.get(name, 0) - (below.get(name, 0) if branch.children else 0)
        cell: JsonObject = {"name": name, "nominalQuota": format_amount(name, nominal)}
        if name in branch.limit:
            room = branch.limit[name] - whole.get(name, 0)
            if room < 0:
                promised = format_amount(name, whole[name])
                rule = f"must be at least what the queue and those below it are promised ({promised})"
                made.refuse(branch.path, f"{name}: {format_amount(name, branch.limit[name])}", rule, "Raise the limit.")
            cell["borrowingLimit"] = format_amount(name, max(0, room))
        cells.append(cell)
    metadata: JsonObject = {"name": branch.name}
    if branch.annotations:
        metadata["annotations"] = branch.annotations
    groups = {"resourceGroups": [quota_group(resources, cells)]}
    if branch.children:
        kind, spec = "Cohort", {"parentName": branch.parent, **branch.spec, **groups}
    else:
        preemption = {"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"}
        queue = {"cohortName": branch.parent, "namespaceSelector": {}, "preemption": preemption}
        kind, spec = "ClusterQueue", {**queue, **branch.spec, **groups}
    made.manifests.append(made.annotated({"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, "spec": spec}))
    for child in branch.children:
        _add(made, child, resources, seen)


def object_name(text: str) -> str:
    """Return a name in Kubernetes for a queue: lower case, with dots between the levels."""
    return re.sub(r"[^a-z0-9.-]+", "-", text.lower()).strip("-.")
