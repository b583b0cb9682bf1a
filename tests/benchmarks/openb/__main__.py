"""`python -m tests.benchmarks.openb NODES PODS`: compare placement policies on the openb trace.

By the published protocol. NODES and PODS are the trace's CSV files, which the project does not ship. Runs are spread
over processes. Prints per policy which share of the GPUs was allocated when 130 % had been asked for, which was left,
and which of it was fragmented, beside the published figures where there are some.

With `--choose-next N` each policy has another row, `N waiting`, for a backlog of N pods of which those that waste least
go first; what that changes in the protocol is said in `tests.benchmarks.openb.backlog`.
"""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections import defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from statistics import fmean, pstdev

from tests.benchmarks.openb.backlog import run_with_backlog
from tests.benchmarks.openb.protocol import PUBLISHED, Outcome, TraceNode, TracePod, read_nodes, read_pods, run

POLICIES = ("random", "spread", "binpack", "dot-product", "best-fit", "fgd", "bid-price")
FIRST_SEED = 42
Row = tuple[str, int]
"""A policy and the backlog it may choose from, 0 for none."""

WHERE = (
    "The openb files are not part of this project: download openb_node_list_gpu_node.csv and a pod list such as "
    "openb_pod_list_default.csv from data/csv of github.com/hkust-adsl/kubernetes-scheduler-simulator, and give their "
    "paths."
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the files, run, print. Exits with 1 and says why where the files cannot be read."""
    options = _parser().parse_args(arguments)
    nodes, pods = _read(options)
    rows = [(policy, backlog) for policy in options.policies for backlog in (0, *options.choose_next)]
    outcomes: dict[Row, list[Outcome]] = defaultdict(list)
    with ProcessPoolExecutor(options.processes) as pool:
        futures = {
            pool.submit(_run, nodes, pods, row, options.first_seed + number): row
            for row in rows
            for number in range(options.seeds)
        }
        for future in as_completed(futures):
            outcomes[futures[future]].append(future.result())
    gpus = sum(node.gpus for node in nodes)
    for line in _table(options.pods.stem.removeprefix("openb_pod_list_"), gpus, rows, outcomes):
        print(line)


def _parser() -> ArgumentParser:
    parser = ArgumentParser(
        prog="python -m tests.benchmarks.openb",
        description="Compare placement policies on the openb trace (files given by path) by the published protocol.",
    )
    parser.add_argument("nodes", type=Path, help="openb_node_list_gpu_node.csv")
    parser.add_argument("pods", type=Path, help="openb_pod_list_default.csv or another pod list")
    parser.add_argument("--policies", default=list(POLICIES), type=_policies, help="comma-separated (default: all)")
    parser.add_argument("--seeds", default=10, type=int, help="runs per policy (default 10)")
    parser.add_argument("--first-seed", default=FIRST_SEED, type=int, help="default 42, as published")
    parser.add_argument(
        "--choose-next", default=[], type=_sizes, metavar="N,...", help="also with N pods waiting to choose from"
    )
    parser.add_argument("--processes", default=os.cpu_count() or 1, type=int, help="runs at the same time")
    return parser


def _read(options: Namespace) -> tuple[list[TraceNode], list[TracePod]]:
    try:
        return read_nodes(options.nodes), read_pods(options.pods)
    except OSError as error:
        sys.exit(f"{error.filename}: {error.strerror}. {WHERE}")
    except (KeyError, ValueError) as error:
        sys.exit(f"{options.nodes} and {options.pods} are not openb's node and pod list: {error!r}. {WHERE}")


def _run(nodes: Sequence[TraceNode], pods: Sequence[TracePod], row: Row, seed: int) -> Outcome:
    policy, backlog = row
    return run_with_backlog(nodes, pods, policy, seed, backlog) if backlog else run(nodes, pods, policy, seed)


def _sizes(text: str) -> list[int]:
    sizes = [word.strip() for word in text.split(",")]
    if not all(size.isdecimal() and int(size) for size in sizes):
        raise ArgumentTypeError(f"{text!r} is not a list of numbers of waiting pods such as 64,256")
    return [int(size) for size in sizes]


def _policies(text: str) -> list[str]:
    words = [word.strip() for word in text.split(",") if word.strip()]
    for word in words:
        if word not in POLICIES:
            raise ArgumentTypeError(f"{word!r} is not one of {', '.join(POLICIES)}")
    return words


def _table(trace: str, gpus: int, rows: Sequence[Row], outcomes: dict[Row, list[Outcome]]) -> Iterable[str]:
    runs_each = len(outcomes[rows[0]])
    yield f"{trace}: {gpus:,} GPUs, 130 % asked for, {runs_each} runs; shares of all GPUs in %, sd in ()"
    yield (
        f"{'policy':<23} {'allocated':>15} {'published':>10} {'unallocated':>12} {'fragmented':>11} {'published':>10} "
        f"{'refused pods':>13} {'ms/pod':>7}"
    )
    for row in rows:
        policy, backlog = row
        runs = outcomes[row]
        allocated = [outcome.allocated for outcome in runs]
        known = [] if backlog else [PUBLISHED.get(trace, {}), PUBLISHED.get(f"{trace} fragmented", {})]
        published, fragmented = [figures.get(policy) for figures in known] or (None, None)
        label = f"{policy}, {backlog} waiting" if backlog else policy
        yield (
            f"{label:<23} {f'{fmean(allocated):.2f} ({pstdev(allocated):.2f})':>15} {_figure(published):>10} "
            f"{100 - fmean(allocated):>12.2f} {fmean(outcome.fragmented for outcome in runs):>11.2f} "
            f"{_figure(fragmented):>10} {fmean(outcome.arrived - outcome.placed for outcome in runs):>13.0f} "
            f"{fmean(outcome.milliseconds_per_pod for outcome in runs):>7.2f}"
        )


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


if __name__ == "__main__":
    main()
