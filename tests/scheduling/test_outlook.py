"""What a change of quota would do is tried and undone: who starts, who must stop, what is overdrawn."""

from typing import Any

from scheduling.model.vocabulary import StopPolicy
from scheduling.outlook import Effects, Load, NodeKind, Outlook, Place, effects
from tests.scheduling.world_helpers import Builder, Quotas, admissions, cycle, look_ahead, names, preemption

NOW = 1000.0


def research(builder: Builder, quotas: Quotas, **fields: Any) -> Outlook:
    """The outlook with the ClusterQueue `research` as given."""
    builder.queue("research", quotas, "company", **fields)
    return look_ahead(builder.world, NOW)


def busy() -> Builder:
    return Builder().queue("research", {"default": 4}, "company").running("train", "research", 3)


def with_change(builder: Builder, quotas: Quotas, **fields: Any) -> Effects:
    return effects(look_ahead(builder.world, NOW), research(builder, quotas, **fields))


def test_who_fits_into_a_larger_quota_starts_and_nothing_is_kept_of_the_trial() -> None:
    builder = busy().pending("small", "research", 1).pending("large", "research", 4, at=1.0)
    found = with_change(builder, {"default": 8})
    assert found.starts == {"team/large": "research"}  # the small one starts without the change, too
    assert found.complete
    assert builder.world.cluster_queue_status("research").admitted == 1
    assert admissions(cycle(builder.world)) == ["small"]


def test_a_smaller_quota_is_overdrawn_and_lets_others_wait() -> None:
    found = with_change(busy().pending("small", "research", 1), {"default": 2})
    assert found.waits == {"team/small": "research"}
    cohort = Place(NodeKind.COHORT, "company", "default", "cpu")
    queue = Place(NodeKind.CLUSTER_QUEUE, "research", "default", "cpu")
    assert {change.place: (change.nominal_before, change.load) for change in found.quotas} == {
        cohort: (0, Load(0, 3000, 1000)),
        queue: (4000, Load(2000, 3000, 0)),  # it may borrow as much as there is
    }


def test_a_borrowing_limit_is_overdrawn_too() -> None:
    found = with_change(busy(), {"default": (2, 0, None)})
    assert {change.place.name: change.load.over for change in found.quotas} == {"company": 1000, "research": 1000}


def test_a_drained_queue_stops_what_runs_and_lends_it_to_others() -> None:
    builder = busy().queue("production", {"default": 0}, "company").pending("serve", "production", 4)
    found = with_change(builder, {"default": 4}, stop_policy=StopPolicy.HOLD_AND_DRAIN)
    assert found.stopped == {"team/train": "research"}
    assert "research" in found.inactive
    assert found.quotas == ()


def test_what_is_reclaimed_preempts_the_borrower() -> None:
    builder = busy().queue("production", {"default": 0}, "company").running("borrowed", "production", 1)
    builder.pending("mine", "research", 1)
    found = with_change(builder, {"default": 4}, preemption=preemption(reclaim="Any"))
    assert found.preempted == {"team/borrowed": "production"}
    assert names(found.starts) == ["mine"]


def test_an_outlook_that_was_cut_short_does_not_say_who_would_wait() -> None:
    builder = busy().pending("small", "research", 1)
    before = look_ahead(builder.world, NOW)
    cut = look_ahead(builder.world, NOW, lambda: False)
    assert not cut.complete
    assert effects(before, Outlook({}, {}, complete=False)).waits == {}
