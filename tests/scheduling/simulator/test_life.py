"""Lives that nobody recorded: whatever happens in whatever order, a workload comes to rest."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from scheduling.lifecycle.retention import Retention
from scheduling.model.configuration import Configuration, RequeuingStrategy, WaitForPodsReady
from scheduling.simulator.life_result import play_life

_RECORDED = Path(__file__).parents[2] / "conformance/lifecycle/mixed.json.gz"
LIVES: list[dict[str, Any]] = [case["input"] for case in json.loads(gzip.decompress(_RECORDED.read_bytes()))]
STEPS = [step for life in LIVES for step in life["steps"]]
WAITS = WaitForPodsReady(60, 30, requeuing_strategy=RequeuingStrategy(backoff_limit_count=1, backoff_base_seconds=10))


@given(
    life=st.sampled_from(LIVES),
    steps=st.lists(st.sampled_from(STEPS), max_size=25),
    strict=st.booleans(),
    waits=st.sampled_from([None, WAITS]),
)
def test_it_comes_to_rest_and_holds_what_it_was_given(
    life: dict[str, Any], steps: list[dict[str, Any]], strict: bool, waits: WaitForPodsReady | None
) -> None:
    configuration = Configuration(wait_for_pods_ready=waits, strict_kueue_lifecycle=strict)
    shots = play_life({**life, "steps": steps}, configuration, Retention(600, 60))
    for shot in shots:
        if "deleted" in shot:
            continue
        conditions = {condition["type"]: condition["status"] for condition in shot["conditions"]}
        holds = shot.get("admission") is not None
        assert holds is (conditions.get("QuotaReserved") == "True")
        assert holds or conditions.get("Admitted") != "True"
        assert holds or not shot["usage"]
        rest = shot.get("requeueAfter")
        assert rest is None or rest > 0
