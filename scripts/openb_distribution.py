"""Counts the shapes of openb's pods, for the demo: python scripts/openb_distribution.py openb_pod_list_default.csv

The trace is Alibaba's cluster-trace-gpu-v2023 as republished by hkust-adsl/kubernetes-scheduler-simulator (data/csv).
It is not shipped; the table that this writes, kueueweb/demo/openb_distribution.json, is.
"""

import csv
import json
import statistics
import sys
from collections import Counter
from pathlib import Path

TABLE = Path(__file__).resolve().parent.parent / "kueueweb" / "demo" / "openb_distribution.json"
SHAPE = ("num_gpu", "gpu_milli", "cpu_milli", "memory_mib")


def main(trace: Path) -> None:
    """Write the table: how many pods have which shape, and the percentiles of how long they ran."""
    with trace.open(encoding="utf-8", newline="") as file:
        pods = list(csv.DictReader(file))
    shapes = Counter(tuple(int(pod[name]) for name in SHAPE) for pod in pods)
    seconds = [
        int(pod["deletion_time"]) - int(pod["scheduled_time"])
        for pod in pods
        if pod["deletion_time"] and pod["scheduled_time"]
    ]
    rows = [
        json.dumps([count, *shape]) for shape, count in sorted(shapes.items(), key=lambda item: (-item[1], item[0]))
    ]
    head = {
        "source": "hkust-adsl/kubernetes-scheduler-simulator, data/csv/openb_pod_list_default.csv, "
        "which republishes cluster-trace-gpu-v2023 of alibaba/clusterdata",
        "license": "Apache-2.0",
        "run_seconds_percentiles": statistics.quantiles(seconds, n=100, method="inclusive"),
        "columns": ["pods", *SHAPE],
    }
    text = (
        json.dumps(head, indent=2).removesuffix("\n}") + ',\n  "shapes": [\n    ' + ",\n    ".join(rows) + "\n  ]\n}\n"
    )
    TABLE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
