"""The headroom of a user, held against what cycles decide."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from scheduling.model.cohort import UserLimit
from scheduling.model.resources import FlavorResource
from tests.scheduling.world_helpers import Builder, admissions, cycle

CPU = FlavorResource("default", "cpu")


@settings(max_examples=60, deadline=None)
@given(
    quota=st.integers(1, 8),
    lent=st.integers(0, 4),
    held=st.lists(st.tuples(st.sampled_from(["ada", "bob"]), st.integers(1, 3)), max_size=5),
    most=st.integers(1, 8),
    number=st.integers(0, 4),
)
def test_a_request_starts_exactly_if_it_is_within_the_headroom(
    quota: int, lent: int, held: list[tuple[str, int]], most: int, number: int
) -> None:
    limits = (UserLimit(users=("ada",), workloads=number, resources={"cpu": most * 1000}),)

    def build() -> Builder:
        builder = Builder().cohort("all").queue("q", {"default": quota}, cohort="all", user_limits=limits)
        builder.queue("lender", {"default": lent}, cohort="all")
        for place, (user, cores) in enumerate(held):
            builder.running(f"held{place}", "q", cores, submitted_by=user)
        return builder

    headroom = build().world.objects.headroom("q", "ada")
    free = min(headroom.quota[CPU], headroom.user["cpu"]) // 1000
    may_start = headroom.workloads != 0
    if free:
        assert (
            admissions(cycle(build().pending("fits", "q", free, submitted_by="ada").world)) == ["fits"]
        ) == may_start
    assert admissions(cycle(build().pending("more", "q", free + 1, submitted_by="ada").world)) == []


def test_a_user_without_a_limit_has_the_free_quota() -> None:
    builder = Builder().queue("q", {"default": 4}).running("held", "q", 1, submitted_by="ada")
    assert builder.world.objects.headroom("q", "ada") == ({CPU: 3000}, {}, None)
