"""Random worlds for property tests: a tree of cohorts, ClusterQueues with limits and policies, and workloads."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from scheduling.model.workload import Workload
from tests.scheduling.world_helpers import Builder, fungibility, preemption, workload

FLAVORS = ("one", "two")
TRY_OR_STOP = ("MayStopSearch", "TryNextFlavor")


@dataclass(frozen=True, slots=True)
class Plan:
    """What a world is built from, so that it can be built again, in another order or not."""

    fair: bool
    cohorts: list[tuple[str, str, dict[str, Any] | None]]
    queues: list[tuple[str, dict[str, Any], str, dict[str, Any]]]
    workloads: list[Workload] = field(default_factory=list)

    def build(self, *, reverse: bool = False, submit: bool = True) -> Builder:
        """A world with everything pending; `reverse` adds all of it in the opposite order."""
        builder = Builder(fair=self.fair)
        step = -1 if reverse else 1
        for name, parent, quotas in self.cohorts[::step]:
            builder.cohort(name, parent, quotas)
        for name, quotas, cohort, fields in self.queues[::step]:
            builder.queue(name, quotas, cohort, **fields)
        for each in self.workloads[::step] if submit else ():
            builder.world.set_workload(each, 0.0)
        return builder


def amounts(most: int) -> st.SearchStrategy[int]:
    """Whole cores."""
    return st.integers(0, most)


@st.composite
def cells(draw: st.DrawFn, in_cohort: bool) -> tuple[int, int | None, int | None]:
    """Nominal, borrowing limit, lending limit."""
    nominal = draw(amounts(8))
    if not in_cohort:
        return nominal, None, None
    limit = st.none() | amounts(6)
    lending = draw(limit)
    return nominal, draw(limit), None if lending is None else min(lending, nominal)


@st.composite
def queue_fields(draw: st.DrawFn) -> dict[str, Any]:
    """Strategy, preemption and fungibility."""
    reclaim = draw(st.sampled_from(("Never", "LowerPriority", "Any")))
    borrow = "Never" if reclaim == "Never" else draw(st.sampled_from(("Never", "LowerPriority")))
    within = draw(st.sampled_from(("Never", "LowerPriority", "LowerOrNewerEqualPriority")))
    threshold = draw(st.none() | st.integers(0, 2)) if borrow != "Never" else None
    when_borrow, when_preempt = draw(st.sampled_from(TRY_OR_STOP)), draw(st.sampled_from(TRY_OR_STOP))
    prefer = ""
    if when_borrow == when_preempt == "TryNextFlavor":
        prefer = draw(st.sampled_from(("", "BorrowingOverPreemption", "PreemptionOverBorrowing")))
    return {
        "strict": draw(st.booleans()),
        "preemption": preemption(within, reclaim, borrow, threshold),
        "flavor_fungibility": fungibility(when_borrow, when_preempt, prefer),
        "fair_weight": draw(st.sampled_from((0.0, 0.5, 1.0, 2.0))),
    }


@st.composite
def plans(draw: st.DrawFn, *, fair: bool | None = None) -> Plan:
    """Up to two levels of cohorts, four ClusterQueues and fifteen workloads of one cpu resource in two flavors."""
    cohorts: list[tuple[str, str, dict[str, Any] | None]] = [("root", "", draw(st.none() | st.just({"one": 4})))]
    for name in draw(st.sampled_from(((), ("left",), ("left", "right")))):
        quotas = {"one": draw(cells(True))} if draw(st.booleans()) else None
        cohorts.append((name, "root", quotas))
    names = [name for name, _, _ in cohorts]
    queues = []
    for number in range(draw(st.integers(1, 4))):
        cohort = draw(st.sampled_from([*names, ""]))
        flavors = FLAVORS[: draw(st.integers(1, 2))]
        quotas = {flavor: draw(cells(bool(cohort))) for flavor in flavors}
        queues.append((f"q{number}", quotas, cohort, draw(queue_fields())))
    workloads = []
    for number in range(draw(st.integers(1, 15))):
        queue = draw(st.sampled_from(queues))[0]
        count = draw(st.integers(1, 4))
        reduced = draw(st.integers(1, count)) if draw(st.booleans()) else None
        workloads.append(
            workload(
                f"w{number:02}",
                queue,
                draw(st.integers(1, 4)),
                count=count,
                min_count=reduced,
                priority=draw(st.integers(0, 3)),
                at=float(draw(st.integers(0, 5))),
                never_reclaimed=draw(st.integers(0, 5)) == 5,
            )
        )
    return Plan(draw(st.booleans()) if fair is None else fair, cohorts, queues, workloads)
