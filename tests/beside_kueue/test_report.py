"""How the comparison of two schedulers is printed and judged."""

from tests.beside_kueue.report import is_enough, pace, table

_WAIT = {"act": "Wait", "flavors": [], "reason": "NoQuota", "message": "no | room"}
_RESERVE = {
    "act": "Reserve",
    "flavors": [{"name": "main", "count": 2, "flavors": {"cpu": "spot", "memory": "spot"}}],
    "reason": "",
    "message": "",
}
_COUNTS = {
    "agreed": 99, "differed": 1, "their_reservations": 90, "our_reservations": 89, "their_preemptions": 10,
    "our_preemptions": 10, "unfinished": 0, "out_of_turn": 9,
}  # fmt: skip


def test_each_difference_has_both_reasons() -> None:
    difference = {
        "at": "08:00", "namespace": "team", "workload_name": "job", "verdict": "OnlyTheirs", "theirs": _RESERVE,
        "ours": _WAIT,
    }  # fmt: skip
    printed = table(_COUNTS, [difference]).splitlines()
    assert printed[0] == "99 of 100 decisions agree (99.00%)"
    assert "OnlyTheirs: 1" in printed
    assert printed[-1] == ("| 08:00 | team/job | OnlyTheirs | Reserve: 2 main in spot | Wait: NoQuota: no / room |")


def test_99_in_100_are_enough_and_none_is_not() -> None:
    assert is_enough(_COUNTS)
    assert not is_enough({**_COUNTS, "differed": 2})
    assert not is_enough({**_COUNTS, "agreed": 0, "differed": 0})
    assert not is_enough({**_COUNTS, "agreed": 3, "differed": 0}), "too few"
    assert not is_enough({**_COUNTS, "unfinished": 2})
    assert not is_enough({**_COUNTS, "their_preemptions": 0})
    assert not is_enough({**_COUNTS, "out_of_turn": 11})


def test_the_time_of_kueues_attempts_is_told() -> None:
    name = "kueue_admission_attempt_duration_seconds"
    metrics = f"""# TYPE {name} histogram
{name}_bucket{{result="success",le="+Inf"}} 2
{name}_sum{{result="success"}} 3
{name}_count{{result="success"}} 2
"""
    assert pace(metrics) == "2 attempts of Kueue gave quota, 1.500 s each"
