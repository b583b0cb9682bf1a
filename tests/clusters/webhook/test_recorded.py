"""What Kueue's webhooks were recorded to answer, asked of ours over TLS: every default, creation and update."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from clusters.jobs.framework.store import ObjectStore
from clusters.jobs.reading import NO_CLUSTER
from clusters.jobs.registry import KINDS
from clusters.jobs.scenario import context_of_scenario
from clusters.webhook.admission import MUTATE_JOBS, VALIDATE_JOBS
from scheduling.manifest.merge_patch import merge_patch
from tests.clusters.webhook.served import FixedSurroundings, ServedWebhook, patched
from tests.conformance.job_results import comparable

FILES = sorted((Path(__file__).parents[2] / "conformance" / "jobs").glob("*.json.gz"))
JsonObject = dict[str, Any]


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[FixedSurroundings, ServedWebhook]]:
    surroundings = FixedSurroundings(NO_CLUSTER)
    with ServedWebhook(surroundings) as webhook:
        yield surroundings, webhook


@pytest.mark.django_db
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name.removesuffix(".json.gz"))
def test_every_recorded_answer_is_given(path: Path, served: tuple[FixedSurroundings, ServedWebhook]) -> None:
    surroundings, webhook = served
    for case in json.loads(gzip.decompress(path.read_bytes())):
        scenario, expected = case["input"], case["expected"]
        store = ObjectStore(scenario.get("cluster") or ())
        surroundings.current = context_of_scenario(scenario, store)
        if "pods" in scenario:
            _check_group(webhook, scenario, expected, store, case["id"])
        else:
            obj, found = _create(webhook, scenario["object"])
            _compare(found, expected, case["id"])
            if obj is not None:
                updates = [_update(webhook, obj, update) for update in scenario.get("updates") or ()]
                _compare({"updates": updates}, expected, case["id"])


def _create(webhook: ServedWebhook, manifest: JsonObject) -> tuple[JsonObject | None, JsonObject]:
    """The object, None where it was refused, and the sections of the scenario's result."""
    mutated = webhook.review(MUTATE_JOBS, "CREATE", manifest)
    if not mutated["allowed"]:
        return None, {"default": {"error": mutated["status"]["message"]}}
    obj = patched(manifest, mutated)
    create = _refusal(webhook.review(VALIDATE_JOBS, "CREATE", obj))
    kept = KINDS[obj["apiVersion"], obj["kind"]].as_kept(obj)
    return None if create["errors"] else obj, {"default": {"object": kept}, "create": create}


def _update(webhook: ServedWebhook, obj: JsonObject, update: JsonObject) -> JsonObject:
    old, new = (merge_patch(obj, update[side]) for side in ("old", "new"))
    if KINDS[obj["apiVersion"], obj["kind"]].defaults_updates:
        new = patched(new, webhook.review(MUTATE_JOBS, "UPDATE", new, old))
    return {"name": update["name"], **_refusal(webhook.review(VALIDATE_JOBS, "UPDATE", new, old))}


def _check_group(
    webhook: ServedWebhook, scenario: JsonObject, expected: JsonObject, store: ObjectStore, name: str
) -> None:
    default, create, kept = [], [], {}
    for pod in scenario["pods"]:
        obj, found = _create(webhook, pod)
        default.append({"name": pod["metadata"]["name"], **found["default"]})
        if "create" in found:
            create.append({"name": pod["metadata"]["name"], **found["create"]})
        if obj is not None:
            kept[pod["metadata"]["name"]] = obj
            store.write(obj)
    updates = [
        _update(webhook, kept[update["pod"]], update)
        for update in scenario.get("updates") or ()
        if update["pod"] in kept
    ]
    _compare({"default": default, "create": create, "updates": updates}, expected, name)


def _refusal(response: JsonObject) -> JsonObject:
    """An answer as the recordings write it."""
    status = response.get("status") or {}
    causes = (status.get("details") or {}).get("causes")
    errors = [
        {"type": each["reason"], "field": each["field"], "detail": _detail(each["message"])} for each in causes or ()
    ]
    if not response["allowed"] and causes is None:
        errors = [{"type": "Error", "detail": status["message"]}]
    return {"errors": errors, "warnings": len(response.get("warnings") or ())}


def _detail(message: str) -> str:
    """What follows Kubernetes' word for the error, and its value."""
    word, _, rest = message.partition(": ")
    if word not in ("Invalid value", "Duplicate value"):
        return rest
    _, end = json.JSONDecoder().raw_decode(rest)
    return rest[end:].removeprefix(": ")


def _compare(found: JsonObject, expected: JsonObject, name: str) -> None:
    for section, result in found.items():
        if section in expected:
            assert comparable(section, result) == comparable(section, expected[section]), f"{name} {section}"
