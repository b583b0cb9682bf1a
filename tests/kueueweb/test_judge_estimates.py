"""`manage.py judge-estimates` reads a trace in openb's format and prints the accuracy as JSON."""

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from kueueweb.openb_trace import UnreadableTrace, declare_times, read_trace
from tests.scheduling.estimates.traces import small_trace

HEADER = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time"
DAY = 86_400


def _line(name: str = "a", gpus: str = "1", created: int = 0, deleted: int = 100, scheduled: str = "10") -> str:
    return f"{name},4000,1024,{gpus},1000,,LS,Running,{created},{deleted},{scheduled}"


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """The small trace as a file, from day 100 on."""
    path = tmp_path / "trace.csv"
    path.write_text("\n".join([HEADER, *_lines()]) + "\n")
    return path


def _lines() -> Iterator[str]:
    for pod in small_trace(120):
        created = 100 * DAY + pod.created_at
        yield _line(pod.name, str(pod.devices), created, created + 5 + pod.run_seconds, str(created + 5))


def _judged(trace: Path, *options: str) -> dict[str, Any]:
    output = io.StringIO()
    call_command("judge_estimates", str(trace), "--gpus", "16", *options, stdout=output)
    found: dict[str, Any] = json.loads(output.getvalue())
    return found


def test_it_prints_the_estimates_and_both_rivals(trace: Path) -> None:
    found = _judged(trace, "--seed", "1")
    assert (found["pods"], found["gpus"], found["seed"], found["declared"]) == (120, 16, 1, False)
    assert found["waiting"] == found["estimate"]["count"] > 20
    assert set(found["rivals_median_error_seconds"]) == {"mean_wait_of_last_hour", "plan_with_longest_runs"}
    assert list(found["stages"]) == ["0", "300", "900", "3600"]
    assert found["better_rival_median_error_seconds"] == min(found["rivals_median_error_seconds"].values())


def test_declared_times_are_used(trace: Path) -> None:
    found, without = _judged(trace, "--declared"), _judged(trace)
    assert found["declared"] is True
    assert found["estimate"] != without["estimate"]
    assert found["waiting"] == without["waiting"]


def test_other_days_hold_no_pods(trace: Path) -> None:
    found = _judged(trace, "--first-day", "300", "--last-day", "301")
    assert (found["pods"], found["waiting"], found["error_ratio_to_better_rival"]) == (0, 0, None)


@pytest.mark.parametrize("options", [("--gpus", "12"), ("--seed", "-1")])
def test_options_that_cannot_be_are_refused(trace: Path, options: tuple[str, str]) -> None:
    with pytest.raises(CommandError, match="Invalid value"):
        _judged(trace, *options)


def test_a_missing_file_is_an_error_of_the_command(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="No such file"):
        _judged(tmp_path / "none.csv")


def test_pods_without_gpus_or_a_scheduled_time_are_left_out() -> None:
    lines = [HEADER, _line("a"), _line("b", gpus="0"), _line("c", scheduled=""), _line("d", created=DAY)]
    [pod] = read_trace(lines, 0, 0)
    assert (pod.name, pod.created_at, pod.run_seconds, pod.devices) == ("a", 0, 90, 1)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["name,qos"], "Required value: column cpu_milli"),
        ([HEADER, _line(gpus="x")], 'line 2: num_gpu: Invalid value: "x"'),
        ([HEADER, _line(deleted=5)], "line 2: deletion_time: Invalid value: 5"),
        ([HEADER, _line(created=-1)], "line 2: creation_time: Invalid value: -1"),
    ],
)
def test_a_malformed_trace_is_told_by_line_and_column(lines: list[str], message: str) -> None:
    with pytest.raises(UnreadableTrace) as error:
        read_trace(lines, 0, 0)
    assert message in str(error.value)


def test_declared_times_are_one_to_three_times_the_true_ones_and_a_seed_repeats_them() -> None:
    pods = small_trace(50)
    declared = declare_times(pods, 3)
    assert declared == declare_times(pods, 3) != declare_times(pods, 4)
    factors = [pod.declared_seconds / pod.run_seconds for pod in declared if pod.declared_seconds]
    assert len(factors) == 50
    assert 1 <= min(factors) < max(factors) <= 3
