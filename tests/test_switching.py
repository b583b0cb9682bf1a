"""docs/switching.md: its commands are there with these options, its files too, and tests hold what it says."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from django.core.management import load_command_class
from django.core.management.base import BaseCommand

ROOT: Final = Path(__file__).resolve().parent.parent
TEXT: Final = (ROOT / "docs" / "switching.md").read_text(encoding="utf-8")

CLAIMS: Final[dict[str, tuple[str, ...]]] = {
    "Instead of the watch, the API server's audit log with response bodies (level `RequestResponse`) can be used.": (
        "tests/scheduler/management/test_replay.py::test_a_scheduler_of_our_rules_agrees",
    ),
    "Decisions that kueueweb would make at the end of the recording are listed, but not compared": (
        "tests/scheduler/management/test_replay.py::test_decisions_at_the_end_of_a_recording_are_listed_apart",
    ),
    "kueueweb's rules are evaluated at the moment of each of Kueue's decisions": (
        "tests/scheduling/test_shadow.py::test_a_difference_is_told_with_both_reasons_and_does_not_spread",
        "tests/clusters/test_shadow.py::test_a_difference_is_shown_with_both_reasons",
    ),
    "If Kueue takes more than a minute to decide": (
        "tests/scheduling/test_shadow.py::test_a_decision_that_is_only_late_is_no_difference",
        "tests/scheduling/test_shadow.py::test_a_decision_that_the_other_scheduler_does_not_make_is_told_once",
    ),
    "`--take-lease` takes the lease from a leading controller": (
        "tests/clusters/test_switch.py::test_a_kueue_that_leads_is_waited_for_unless_its_lease_is_to_be_taken",
    ),
    "switches Kueue's webhooks off: their configurations remain": (
        "tests/clusters/test_switch.py::test_webhooks_are_off_while_we_decide_and_as_they_were_afterwards",
    ),
    "the handover is refused and names these jobs": (
        "tests/clusters/test_switch.py::test_a_job_that_kueue_would_not_leave_alone_is_named_and_keeps_the_cluster",
    ),
    "the next run completes an interrupted one, and `handover` undoes an interrupted takeover": (
        "tests/clusters/test_switch.py::test_an_interrupted_takeover_is_completed_or_undone",
    ),
    "the jobs and running pods whose uid or generation has changed for any reason": (
        "tests/clusters/test_switch.py::test_a_witness_names_jobs_and_pods_that_are_others_by_now",
    ),
}


def command_lines() -> Iterator[tuple[str, str]]:
    """The commands of the page, each with the rest of its line."""
    for line in TEXT.splitlines():
        yield from re.findall(r"manage\.py (\w+)([^`|]*)", line)


def command(name: str) -> BaseCommand:
    [app] = [found.parents[2] for found in ROOT.glob(f"*/management/commands/{name}.py")]
    return load_command_class(app.name, name)


def test_each_command_is_there_with_its_options() -> None:
    found = list(command_lines())
    assert len(found) >= 10
    for name, rest in found:
        known = command(name).create_parser("manage.py", name)._option_string_actions
        assert {option for option in re.findall(r"--[\w-]+", rest) if option not in known} == set(), name


def test_each_file_and_page_is_there() -> None:
    paths = [*re.findall(r"\]\(([\w.]+\.md)", TEXT), *re.findall(r"`((?:tests|docs|deploy)/[\w./]+)`", TEXT)]
    assert len(paths) >= 8
    for path in paths:
        assert (ROOT / "docs" / path).exists() or (ROOT / path).exists(), path
    for name in re.findall(r"`([\w-]+\.yaml)`", TEXT):
        assert (ROOT / "deploy" / "kubernetes" / name).exists(), name


@pytest.mark.parametrize("claim", CLAIMS)
def test_the_page_still_says_so_and_its_tests_are_there(claim: str) -> None:
    assert claim in " ".join(TEXT.split())
    for test in CLAIMS[claim]:
        file, _, name = test.partition("::")
        assert f"def {name}(" in (ROOT / file).read_text(encoding="utf-8"), test
