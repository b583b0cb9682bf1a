"""The decisions of other schedulers, family by family, as `manage.py policies` answers them."""

from __future__ import annotations

import gzip
import json
import math
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from kueueweb.management.commands.policies import FAMILIES

RECORDED = sorted(Path(__file__).parent.glob("others/*.json.gz"))
COMPARED: dict[str, tuple[str, ...]] = {
    "kai-fairshare": ("fairShare",),
    "kai-fairshare-tree": ("fairShare",),
    "volcano-capacity-flat": ("queues", "queueOrder"),
    "volcano-capacity-tree": ("queues", "queueOrder"),
    "volcano-proportion": ("queues", "queueOrder"),
    "yunikorn-allocate": ("headroomBefore", "userBefore", "rejected"),
}
"""The parts of an answer that are compared; all of it where a family is not listed."""


def family_of(path: Path) -> str:
    return path.name.removesuffix(".json.gz")


def number(value: Any) -> float | None:
    if value == "inf":
        return math.inf
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def same(want: Any, got: Any) -> bool:
    """Whether two answers are alike. What is absent, null, 0, empty or false counts as one. Recorded decimals are
    rounded to six digits; whole numbers are not."""
    if not want and not got:
        return True
    if isinstance(want, dict) or isinstance(got, dict):
        want, got = want or {}, got or {}
        both = isinstance(want, dict) and isinstance(got, dict)
        return both and all(same(want.get(key), got.get(key)) for key in (want.keys() | got.keys()) - {"trace"})
    if isinstance(want, list) or isinstance(got, list):
        both = isinstance(want, list) and isinstance(got, list) and len(want) == len(got)
        return both and all(map(same, want, got))
    wanted, given = number(want or 0), number(got or 0)
    if wanted is not None and given is not None:
        return math.isclose(wanted, given, rel_tol=1e-9 if isinstance(want, int) else 1e-5, abs_tol=1e-5)
    return bool(want == got)


def compared(family: str, answer: Any) -> Any:
    parts = COMPARED.get(family)
    if family == "yunikorn-allocate":  # a state for each wave of applications
        return [{part: wave.get(part) for part in COMPARED[family]} for wave in answer["waves"]]
    return answer if parts is None else {part: answer.get(part) for part in parts}


def test_each_family_is_recorded() -> None:
    assert {family_of(path) for path in RECORDED} == set(FAMILIES)


@pytest.mark.parametrize("path", RECORDED, ids=family_of)
def test_family(path: Path) -> None:
    family = family_of(path)
    cases = json.loads(gzip.decompress(path.read_bytes()))
    assert cases
    for case in cases:
        want, got = (compared(family, found) for found in (case["expected"], FAMILIES[family](case["input"])))
        assert same(want, got), f"{case['name']}: {want} is recorded, {got} was found"


def test_the_command_answers_a_file(tmp_path: Path) -> None:
    target = tmp_path / "out.json"
    call_command("policies", "slurm-fairtree", str(RECORDED[0].parent / "slurm-fairtree.json.gz"), "--output", target)
    answers = json.loads(target.read_text())
    assert {"name", "result"} == answers[0].keys()
    assert len(answers) == 60


def test_the_command_names_a_scenario_that_it_cannot_read(tmp_path: Path) -> None:
    source = tmp_path / "in.json"
    source.write_text(json.dumps([{"name": "broken", "input": {}}]))
    with pytest.raises(CommandError, match="scenario broken: KeyError"):
        call_command("policies", "slurm-priority", str(source), "--output", tmp_path / "out.json")
