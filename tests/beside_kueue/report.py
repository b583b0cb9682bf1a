"""The comparison of two schedulers, as a person reads it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, Final

from prometheus_client.parser import text_string_to_metric_families

_ENOUGH: Final = 0.99
_MIN_COMPARED: Final = 50
_MAX_UNFINISHED: Final = 0.01
_MAX_OUT_OF_TURN: Final = 0.1
"""A scheduler of another order agrees out of turn in nearly all decisions."""
_DURATIONS: Final = "kueue_admission_attempt_duration_seconds_"


def agreement(counts: Mapping[str, int]) -> float:
    """Agreed of all compared decisions, from 0 to 1; 0 if none was compared: then nothing is shown."""
    compared = counts["agreed"] + counts["differed"]
    return counts["agreed"] / compared if compared else 0.0


def is_enough(counts: Mapping[str, int]) -> bool:
    """Whether 99 in 100 decisions agree, nine in ten of them in turn, of enough decisions of all sorts, of which
    nearly all were compared."""
    compared = counts["agreed"] + counts["differed"]
    shows_much = compared >= _MIN_COMPARED and counts["their_preemptions"] > 0
    is_complete = counts["unfinished"] <= _MAX_UNFINISHED * compared
    is_in_turn = counts["out_of_turn"] <= _MAX_OUT_OF_TURN * compared
    return shows_much and is_complete and is_in_turn and agreement(counts) >= _ENOUGH


def pace(metrics: str) -> str:
    """How long Kueue took for an attempt, by its own metrics: on a slow machine, it has not evaluated all workloads
    between two events, and differences follow from that.
    """
    found: defaultdict[str, float] = defaultdict(float)
    for family in text_string_to_metric_families(metrics):
        for sample in family.samples:
            if sample.name.startswith(_DURATIONS):
                found[f"{sample.labels['result']} {sample.name.removeprefix(_DURATIONS)}"] += sample.value
    return "; ".join(
        f"{found[f'{result} count']:.0f} attempts of Kueue {words}, {found[f'{result} sum'] / count:.3f} s each"
        for result, words in (("success", "gave quota"), ("inadmissible", "gave none"))
        if (count := found[f"{result} count"])
    )


def table(counts: Mapping[str, int], differences: Iterable[Mapping[str, Any]]) -> str:
    """The counts, how many differences have each verdict, and a Markdown row for each."""
    rows = list(differences)
    compared = counts["agreed"] + counts["differed"]
    verdicts = Counter(row["verdict"] for row in rows)
    lines = [
        f"{counts['agreed']} of {compared} decisions agree ({agreement(counts):.2%})",
        f"quota given: {counts['their_reservations']} by Kueue, {counts['our_reservations']} by kueueweb",
        f"preemptions: {counts['their_preemptions']} by Kueue, {counts['our_preemptions']} by kueueweb",
        f"agreed out of turn: {counts['out_of_turn']}",
        f"comparisons that were cut short: {counts['unfinished']}",
        *(f"{verdict}: {number}" for verdict, number in sorted(verdicts.items())),
    ]
    if rows:
        lines += ["", "| at | workload | verdict | Kueue | kueueweb |", "|---|---|---|---|---|", *map(_line, rows)]
    return "\n".join((*lines, ""))


def _line(row: Mapping[str, Any]) -> str:
    name = f"{row['namespace']}/{row['workload_name']}"
    return f"| {row['at']} | {name} | {row['verdict']} | {_choice(row['theirs'])} | {_choice(row['ours'])} |"


def _choice(choice: Mapping[str, Any]) -> str:
    pod_sets = ", ".join(
        f"{pod_set['count']} {pod_set['name']} in {'/'.join(sorted(set(pod_set['flavors'].values())))}"
        for pod_set in choice["flavors"]
    )
    words = (choice["act"], pod_sets, choice["reason"], choice["message"])
    return ": ".join(word for word in words if word).replace("|", "/")
