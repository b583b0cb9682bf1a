"""Pods and jobs of the KAI scheduler: their queue, and fractions of a GPU by annotations (pure).

KAI counts a fraction in quota and isolates nothing. Here the pod gets a part of the memory of a device, which HAMi
limits, and no limit of cores.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from fractions import Fraction
from typing import Any, Final

from clusters.manifests.translation.translated import JsonObject, Translation
from queues.manifests import kueue_keys as keys

_QUEUE_LABELS: Final = ("kai.scheduler/queue", "runai/queue")
_SCHEDULER: Final = "kai-scheduler"
_FRACTION: Final = "gpu-fraction"
_MEMORY: Final = "gpu-memory"
_DEVICES: Final = "gpu-fraction-num-devices"
_CONTAINER: Final = "gpu-fraction-container-name"
_SHARES: Final = (_FRACTION, _MEMORY, _DEVICES, _CONTAINER)
_GPU: Final = "nvidia.com/gpu"


def is_of_kai(content: Mapping[str, Any]) -> bool:
    """Return whether an object is a pod, or has a pod template, of the KAI scheduler."""
    if content.get("kind") == "Queue":
        return False
    return any(_is_of_kai(holder) for _, holder in _holders(content))


def translate_kai_pods(content: Mapping[str, Any]) -> Translation:
    """Return the object with our label of the queue, and with resources in the place of annotations."""
    made, copy = Translation(f"{content.get('kind')} of {_SCHEDULER}"), deepcopy(dict(content))
    queue = next(filter(None, (_queue_of(holder, made, path) for path, holder in _holders(copy))), "")
    for path, holder in _holders(copy):
        spec = holder.get("spec") or {}
        if spec.get("schedulerName") == _SCHEDULER:
            del spec["schedulerName"]
            made.keep(f"{path}spec.schedulerName", "left out: kueueweb admits the job")
        _share_devices(holder, spec, path, made)
    if queue:
        metadata = copy.setdefault("metadata", {})
        metadata["labels"] = {**(metadata.get("labels") or {}), keys.QUEUE_NAME: queue}
    else:
        made.lose(f"metadata.labels[{_QUEUE_LABELS[0]}]", f"name a queue in the label {keys.QUEUE_NAME}")
    made.manifests.append(made.annotated(copy))
    return made


def _holders(content: Mapping[str, Any]) -> Iterator[tuple[str, JsonObject]]:
    """Yield the object itself and its pod template, each with its path."""
    yield "", dict(content) if not isinstance(content, dict) else content
    template = (content.get("spec") or {}).get("template") if isinstance(content.get("spec"), Mapping) else None
    if isinstance(template, dict):
        yield "spec.template.", template


def _is_of_kai(holder: Mapping[str, Any]) -> bool:
    metadata, spec = holder.get("metadata") or {}, holder.get("spec") or {}
    labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    names_queue = any(name in labels for name in _QUEUE_LABELS)
    return names_queue or spec.get("schedulerName") == _SCHEDULER or any(name in annotations for name in _SHARES)


def _queue_of(holder: JsonObject, made: Translation, path: str) -> str:
    labels = (holder.get("metadata") or {}).get("labels") or {}
    found = ""
    for name in _QUEUE_LABELS:
        if name in labels:
            found = found or str(labels.pop(name))
            made.keep(f"{path}metadata.labels[{name}]", f"the label {keys.QUEUE_NAME}")
    return found


def _share_devices(holder: JsonObject, spec: JsonObject, path: str, made: Translation) -> None:
    annotations = (holder.get("metadata") or {}).get("annotations") or {}
    stated = {name: str(annotations.pop(name)) for name in _SHARES if name in annotations}
    if not stated:
        return
    wanted = stated.get(_CONTAINER)
    containers = [each for each in spec.get("containers") or () if wanted in (None, each.get("name"))]
    if not containers:
        made.refuse(f"{path}metadata.annotations[{_CONTAINER}]", wanted, "Not found: no container of this name")
        return
    amounts = _amounts(stated, path, made)
    resources = containers[0].setdefault("resources", {})
    resources["limits"] = {**(resources.get("limits") or {}), **amounts}
    told = ", ".join(f"{name}: {text}" for name, text in amounts.items())
    made.keep(f"{path}metadata.annotations[{_FRACTION if _FRACTION in stated else _MEMORY}]", told)


def _amounts(stated: Mapping[str, str], path: str, made: Translation) -> dict[str, str]:
    found = {_GPU: stated.get(_DEVICES, "1")}
    if not found[_GPU].isdigit() or not int(found[_GPU]):
        made.refuse(f"{path}metadata.annotations[{_DEVICES}]", found[_GPU], "must be a whole number above 0")
    if _FRACTION in stated:
        try:
            percent = Fraction(stated[_FRACTION]) * 100
        except ValueError:
            percent = Fraction(0)
        if not 0 < percent <= 100:
            made.refuse(f"{path}metadata.annotations[{_FRACTION}]", stated[_FRACTION], "must be above 0, at most 1")
        found["nvidia.com/gpumem-percentage"] = str(max(1, round(percent)))
    elif _MEMORY in stated:
        if not stated[_MEMORY].isdigit() or not int(stated[_MEMORY]):
            rule = "must be a whole number of MiB above 0"
            made.refuse(f"{path}metadata.annotations[{_MEMORY}]", stated[_MEMORY], rule)
        found["nvidia.com/gpumem"] = stated[_MEMORY]
    else:
        made.refuse(f"{path}metadata.annotations", None, f"Required value: {_FRACTION} or {_MEMORY}")
    return found
