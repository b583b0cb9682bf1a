"""Hypothesis strategies: any object of Kueue that validation takes."""

from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from kinds.declaration import KindSpec
from queues.kinds import KINDS
from queues.kinds.quotas import QuotaSpec, ResourceGroupSpec
from queues.manifests.workload import PodSetSpec, WorkloadSpec
from scheduling.manifest import ObjectMeta
from scheduling.model.quantity import parse_amount

NAMES = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,8}[a-z0-9])?", fullmatch=True)
VALUES = st.from_regex(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,8}[A-Za-z0-9])?)?", fullmatch=True)
LABELS = st.dictionaries(NAMES, VALUES, max_size=3)
TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), max_size=20)
METAS = st.builds(ObjectMeta, NAMES, st.just(""), LABELS, st.dictionaries(NAMES, TEXTS, max_size=2))
WEIGHTS = st.one_of(st.just(Decimal(0)), st.integers(2, 10**13).map(lambda nanos: Decimal(nanos) / 10**9))
AMOUNTS = st.integers(0, 2**62)
SHARES = st.sampled_from(["100%", "50%", "33.33%", "0.5%"])
_WEIGHT = st.integers(0, 2**31 - 1)
_LIMITS = st.fixed_dictionaries({"workloads": st.integers(1, 10**6)}) | st.fixed_dictionaries(
    {"resources": st.dictionaries(st.sampled_from(["x/y", "nvidia.com/gpu"]), _WEIGHT.map(str), min_size=1)}
)


def _limits_of(users: list[str]) -> st.SearchStrategy[list[dict[str, object]]]:
    return st.tuples(*(st.builds(dict, _LIMITS, users=st.just([user])) for user in users)).map(list)


def _group_limits_of(groups: list[str]) -> st.SearchStrategy[list[dict[str, object]]]:
    none: list[str] = []
    return st.tuples(*(st.builds(dict, _LIMITS, users=st.just(none), groups=st.just([group])) for group in groups)).map(
        list
    )


USER_LIMITS = st.builds(
    lambda of_users, of_groups: [*of_users, *of_groups],
    st.lists(st.sampled_from(["ada", "bob@example.com", "*"]), unique=True).flatmap(_limits_of),
    st.lists(st.sampled_from(["eng", "*"]), unique=True).flatmap(_group_limits_of),
)
"""At most one limit for each user and for each group."""
PRIORITY_WEIGHTS = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(["age", "fair_share", "job_size", "queue", "class"], _WEIGHT),
        "resources": st.dictionaries(st.sampled_from(["cpu", "nvidia.com/gpu"]), _WEIGHT, min_size=1),
        "max_age_seconds": st.integers(1, 10**6),
        "half_life_seconds": st.integers(1, 10**6),
        "usage": st.dictionaries(st.sampled_from(["cpu", "memory"]), _WEIGHT, min_size=1),
        "favor_small": st.just(True),
        "relative_to_time": st.just(True),
        "unscaled": st.lists(st.sampled_from(["queue", "class", "resources"]), unique=True, min_size=1),
    },
)
SECONDS = st.none() | st.integers(0, 10**6)


def spec(kind: str, meta: ObjectMeta, **values: Any) -> KindSpec:
    """A spec with these values; the others are the defaults."""
    defaults = {field.name: field.type.default for field in KINDS[kind].stored}
    assert values.keys() <= defaults.keys()
    return KindSpec(meta, defaults | values)


def specs(kind: str, metas: st.SearchStrategy[ObjectMeta], **values: Any) -> st.SearchStrategy[KindSpec]:
    """Specs of a kind whose values are drawn from these strategies."""
    return st.builds(spec, st.just(kind), metas, **values)


@st.composite
def resource_groups(draw: st.DrawFn, *, lending_within_nominal: bool) -> tuple[ResourceGroupSpec, ...]:
    """Groups with resources and flavors of their own; some cells are left out."""
    names = draw(st.lists(NAMES, unique=True, max_size=8))
    resources = draw(st.lists(st.sampled_from(["cpu", "memory", "nvidia.com/gpu", "x/y"]), unique=True, max_size=4))
    groups = []
    while names and resources:
        flavors = [names.pop() for _ in range(draw(st.integers(1, len(names))))]
        covered = [resources.pop() for _ in range(draw(st.integers(1, len(resources))))]
        cells = [
            draw(quotas(flavor, resource, lending_within_nominal))
            for flavor in flavors
            for resource in covered
            if draw(st.booleans())
        ]
        groups.append(ResourceGroupSpec(tuple(covered), tuple(flavors), tuple(cells)))
    return tuple(groups)


@st.composite
def quotas(draw: st.DrawFn, flavor: str, resource: str, lending_within_nominal: bool) -> QuotaSpec:
    """One cell."""
    nominal = draw(AMOUNTS)
    lending = st.integers(0, nominal) if lending_within_nominal else AMOUNTS
    return QuotaSpec(flavor, resource, nominal, draw(st.none() | AMOUNTS), draw(st.none() | lending))


@st.composite
def cluster_queues(draw: st.DrawFn) -> KindSpec:
    """Any ClusterQueue that validation takes."""
    groups = draw(resource_groups(lending_within_nominal=True))
    flavors = [flavor for group in groups for flavor in group.flavors]
    on_flavors = st.lists(st.sampled_from(flavors), unique=True, max_size=3) if flavors else st.just([])
    try_next = draw(st.booleans())
    policy = st.just("TryNextFlavor") if try_next else st.sampled_from(["MayStopSearch", "TryNextFlavor"])
    preferences = ["", "BorrowingOverPreemption", "PreemptionOverBorrowing"] if try_next else [""]
    reclaim = draw(st.sampled_from(["Never", "LowerPriority", "Any"]))
    checks = draw(st.lists(NAMES, unique=True, max_size=3))
    strategy = draw(st.sampled_from(["StrictFIFO", "BestEffortFIFO"]))
    followers = [cell for group in groups for cell in group.quotas if cell.lending_limit is None]
    return spec(
        "ClusterQueue",
        draw(METAS),
        cohort_name=draw(st.just("") | NAMES),
        queueing_strategy=strategy,
        namespace_selector=draw(st.none() | st.just({}) | st.just({"matchLabels": {"a": "b"}})),
        when_can_borrow=draw(policy),
        when_can_preempt=draw(policy),
        flavor_preference=draw(st.sampled_from(preferences)),
        within_cluster_queue=draw(st.sampled_from(["Never", "LowerPriority", "LowerOrNewerEqualPriority"])),
        reclaim_within_cohort=reclaim,
        borrow_within_cohort_policy="Never"
        if reclaim == "Never"
        else draw(st.sampled_from(["Never", "LowerPriority"])),
        borrow_within_cohort_max_priority_threshold=draw(st.none() | st.integers(-(2**31), 2**31 - 1)),
        admission_checks=[{"name": name, "onFlavors": draw(on_flavors)} for name in checks],
        stop_policy=draw(st.sampled_from(["None", "Hold", "HoldAndDrain"])),
        fair_sharing_weight=draw(WEIGHTS),
        admission_mode=draw(st.sampled_from(["", "UsageBasedAdmissionFairSharing", "NoAdmissionFairSharing"])),
        preempt_for_devices=draw(st.booleans()),
        minimum_run_seconds=draw(SECONDS),
        cool_down_seconds=draw(SECONDS),
        resource_groups=groups,
        node_quotas=[
            {"flavor": cell.flavor, "resource": cell.resource, "share": draw(SHARES), "headroom": "1"}
            for cell in followers
            if draw(st.booleans())
        ],
        priority_weights=draw(PRIORITY_WEIGHTS),
        queue_priority=draw(st.integers(0, 2**31 - 1)),
        backfill=draw(st.sampled_from(["", "easy"])) if strategy == "BestEffortFIFO" else "",
        never_reclaimed=draw(st.booleans()),
        user_limits=draw(USER_LIMITS),
    )


@st.composite
def workloads(draw: st.DrawFn) -> WorkloadSpec:
    """Any Workload object that validation takes."""
    kind = draw(st.sampled_from(["", "WorkloadPriorityClass", "PriorityClass"]))
    requests = draw(st.dictionaries(st.sampled_from(["cpu", "memory", "nvidia.com/gpu"]), st.integers(0, 10**6)))
    container = {"name": "c", "resources": {"requests": {name: str(value) for name, value in requests.items()}}}
    template = {
        "metadata": {"annotations": draw(st.dictionaries(NAMES, TEXTS, max_size=2))},
        "spec": {"containers": [container]},
    }
    amounts = {name: parse_amount(name, value) for name, value in requests.items()}
    count = draw(st.integers(1, 100))
    names = draw(st.lists(NAMES, unique=True, min_size=1, max_size=3))
    sets = [PodSetSpec(name, count, template, amounts) for name in names]
    sets[0] = PodSetSpec(names[0], count, template, amounts, draw(st.none() | st.integers(1, count)))
    return WorkloadSpec(
        namespace=draw(NAMES),
        name=draw(NAMES),
        queue_name=draw(st.just("") | NAMES),
        pod_sets=tuple(sets),
        priority=draw(st.integers(-(2**31), 2**31 - 1)),
        priority_class_kind=kind,
        priority_class_name=draw(NAMES) if kind else "",
        active=draw(st.booleans()),
        never_preempt=draw(st.booleans()),
        maximum_execution_seconds=draw(st.none() | st.integers(1, 10**6)),
        preemption_gates=tuple(draw(st.lists(NAMES, max_size=2))),
        labels=draw(LABELS),
    )
