"""JobFlows and JobTemplates of Volcano at their admission."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from clusters.api_objects import JsonObject
from clusters.webhook.reviews import Verdict
from clusters.webhook.volcano_objects import VALIDATE_FLOWS
from tests.clusters.manifests.translation.test_volcano_job_flows import FLOW, TEMPLATES, changed
from tests.clusters.webhook.test_kueue_objects import causes, review


def flow(content: JsonObject = FLOW, queue: str = "main") -> JsonObject:
    """The flow with the label of a queue."""
    made = copy.deepcopy(content)
    made["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": queue} if queue else {}
    return made


def answer(obj: JsonObject, old: JsonObject | None = None, **more: Any) -> Verdict:
    return review(VALIDATE_FLOWS, obj, old, **more)


def test_a_flow_of_a_queue_is_accepted_before_its_templates_exist() -> None:
    assert answer(flow()).allowed


@pytest.mark.parametrize(
    ("broken", "field"),
    [
        (changed("keep", "spec", "jobRetainPolicy"), "spec.jobRetainPolicy"),
        (changed({"targets": ["z"]}, "spec", "flows", 1, "dependsOn"), "spec.flows[1].dependsOn.targets[0]"),
        (changed("a", "spec", "flows"), "spec.flows"),
    ],
)
def test_a_mistake_is_refused_at_its_field_unless_the_flow_is_volcanos(broken: JsonObject, field: str) -> None:
    assert [path for _, path in causes(answer(flow(broken)))] == [field]
    assert answer(flow(broken, queue="")).allowed
    assert answer(flow(broken), flow(broken)).allowed  # an edit of the status
    assert not answer(flow(broken), flow(broken, queue="")).allowed
    assert answer(flow(broken), user="us").allowed


def test_the_mistakes_of_a_template_are_warnings() -> None:
    good, broken = TEMPLATES[0], copy.deepcopy(TEMPLATES[0])
    broken["spec"]["minAvailable"] = 9
    assert answer(good).warnings == []
    verdict = answer(broken)
    assert verdict.allowed
    assert "spec.minAvailable" in verdict.warnings[0]
