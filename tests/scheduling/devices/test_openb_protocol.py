"""The benchmark's protocol on a trace small enough to follow by hand."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from scheduling.devices.policies.typical_pods import pod_shape, typical_pods
from scheduling.model.placement import Placement
from tests.benchmarks.openb.__main__ import POLICIES, main
from tests.benchmarks.openb.protocol import MILLI, TraceNode, TracePod, arrivals, fleet_of, read_nodes, read_pods, run

NODES = "sn,cpu_milli,memory_mib,gpu,model\n" + "".join(
    f"node-{n},32000,65536,4,{'T4' if n % 2 else 'G2'}\n" for n in range(6)
)
PODS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos\n" + "".join(
    f"pod-{n:02},{1000 * (n % 3)},1024,{gpus},{milli},{spec},LS\n"
    for n, (gpus, milli, spec) in enumerate(
        [(1, 1000, ""), (1, 810, ""), (1, 320, "T4"), (2, 1000, "G2|T4"), (0, 0, ""), (1, 470, ""), (1, 190, "")] * 4
    )
)


@pytest.fixture
def trace(tmp_path: Path) -> tuple[Path, Path]:
    nodes, pods = tmp_path / "nodes.csv", tmp_path / "openb_pod_list_tiny.csv"
    nodes.write_text(NODES)
    pods.write_text(PODS)
    return nodes, pods


def test_the_files_are_read(trace: tuple[Path, Path]) -> None:
    nodes, pods = read_nodes(trace[0]), read_pods(trace[1])
    assert nodes[1] == TraceNode("node-1", 32_000, 65_536, 4, "T4")
    assert pods[3] == TracePod("pod-03", 0, 1024, 2, 1000, ("G2", "T4"))
    assert pods[3].demand_milli == 2000


def test_arrivals_are_the_trace_in_any_order_and_then_clones(trace: tuple[Path, Path]) -> None:
    pods = read_pods(trace[1])
    arriving = arrivals(pods, 24 * MILLI, random.Random(1))
    assert sorted(arriving[: len(pods)], key=lambda pod: pod.name) == pods
    assert arriving[: len(pods)] != pods
    asked = sum(pod.demand_milli for pod in arriving)
    assert 1.3 * 24 * MILLI - 2000 < asked <= 1.3 * 24 * MILLI + 1000
    assert arrivals(pods, 24 * MILLI, random.Random(1)) == arriving


@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_places_what_fits(trace: tuple[Path, Path], policy: str) -> None:
    nodes, pods = read_nodes(trace[0]), read_pods(trace[1])
    outcome = run(nodes, pods, policy, seed=42)
    assert 60 < outcome.allocated <= 100
    assert 0 <= outcome.fragmented <= 100 - outcome.allocated + 5
    assert 0 < outcome.placed <= outcome.arrived
    again = run(nodes, pods, policy, seed=42)
    assert (again.allocated, again.placed) == (outcome.allocated, outcome.placed)


@pytest.mark.parametrize(("policy", "beside"), [(word, word != "spread") for word in POLICIES if word != "random"])
def test_where_a_share_goes(policy: str, beside: bool) -> None:
    """All but spread put a half beside the half that is there, so that a whole GPU stays free."""
    nodes = [TraceNode(name, 32_000, 65_536, 1, "T4") for name in "abcd"]
    half, whole = TracePod("half", 1000, 1024, 1, 500, ()), TracePod("whole", 1000, 1024, 1, 1000, ())
    fleet = fleet_of(nodes, policy, random.Random(3))
    fleet.mix.pods = typical_pods(pod_shape(pod.pod_set()) for pod in (half, whole))
    chosen = []
    for key in ("first", "second"):
        placement = fleet.place([half.pod_set()])
        assert isinstance(placement, Placement)
        fleet.reserve(key, placement)
        chosen.append(placement.pods[0].node)
    assert (chosen[0] == chosen[1]) == beside


class TestCommand:
    def test_the_table(self, trace: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
        main([str(trace[0]), str(trace[1]), "--policies", "best-fit,fgd", "--seeds", "2", "--processes", "1"])
        lines = capsys.readouterr().out.splitlines()
        assert lines[0].startswith("tiny: 24 GPUs, 130 % asked for, 2 runs")
        assert [line.split()[0] for line in lines[1:]] == ["policy", "best-fit", "fgd"]

    def test_a_backlog_has_a_row_of_its_own(self, trace: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
        options = ["--policies", "bid-price", "--choose-next", "4,8", "--seeds", "1", "--processes", "1"]
        main([str(trace[0]), str(trace[1]), *options])
        labels = [line[:23].strip() for line in capsys.readouterr().out.splitlines()[2:]]
        assert labels == ["bid-price", "bid-price, 4 waiting", "bid-price, 8 waiting"]

    @pytest.mark.parametrize("sizes", ["0", "many", "4,"])
    def test_a_backlog_must_be_a_number(
        self, trace: tuple[Path, Path], sizes: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        with pytest.raises(SystemExit):
            main([str(trace[0]), str(trace[1]), "--choose-next", sizes])
        assert "is not a list of numbers of waiting pods" in capsys.readouterr().err

    def test_without_the_files_it_says_where_they_are(self, tmp_path: Path) -> None:
        with pytest.raises(SystemExit, match="not part of this project: download openb_node_list_gpu"):
            main([str(tmp_path / "absent.csv"), str(tmp_path / "pods.csv")])

    def test_another_file_is_refused(self, trace: tuple[Path, Path]) -> None:
        with pytest.raises(SystemExit, match="are not openb's node and pod list"):
            main([str(trace[1]), str(trace[0])])

    def test_an_unknown_policy_is_refused(self, trace: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(SystemExit):
            main([str(trace[0]), str(trace[1]), "--policies", "worst-fit"])
        assert "'worst-fit' is not one of random, spread" in capsys.readouterr().err
