"""Our manifests as Volcano's, with a report of what Volcano does not have (pure).

ClusterQueues and Cohorts become Queues, Jobs and JobSets of a queue become Jobs of Volcano; all other objects are left
as they are. A quota of Volcano includes those below it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from clusters.manifests.translation.quota_tree import POLICY, ROOT, Amounts
from clusters.manifests.translation.translated import JsonObject, Translation, metadata_of
from queues.manifests import kueue_keys as keys
from scheduling.model.quantity import InvalidQuantity, format_amount, parse_amount

_QUEUE: Final = "scheduling.volcano.sh/v1beta1"
_JOB: Final = "batch.volcano.sh/v1alpha1"
_KUEUE: Final = "kueue.x-k8s.io"
_NEVER_RECLAIM: Final = "kueueweb.io/never-reclaim"
_QUEUE_PRIORITY: Final = "kueueweb.io/queue-priority"
_SAID: Final = frozenset({"cohortName", "cohort", "parentName", "resourceGroups", "fairSharing", "queueingStrategy"})
_READ_ANNOTATIONS: Final = frozenset(
    {POLICY, _NEVER_RECLAIM, _QUEUE_PRIORITY, keys.TRANSLATED, "kueueweb.io/node-quotas"}
)
_DEFAULTS: Final[Mapping[str, Any]] = {
    "namespaceSelector": {},
    "preemption": {"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"},
}
"""Fields whose value is what Volcano does anyway."""
_JOB_FIELDS: Final = frozenset(
    {"suspend", "parallelism", "completions", "completionMode", "template", "backoffLimit", "backoffLimitPerIndex",
     "ttlSecondsAfterFinished"}
)  # fmt: skip


def export_to_volcano(contents: Sequence[Mapping[str, Any]]) -> list[Translation]:
    """Return the export of each object, in their order."""
    queues = _Queues(contents)
    return [_exported(content, queues) for content in contents]


def _exported(content: Mapping[str, Any], queues: _Queues) -> Translation:
    made = Translation("kueueweb")
    kind, group = content.get("kind"), str(content.get("apiVersion", "")).partition("/")[0]
    labels = (content.get("metadata") or {}).get("labels") or {}
    if group == _KUEUE and kind in ("ClusterQueue", "Cohort"):
        queues.export(content, made)
    elif group == _KUEUE and kind == "LocalQueue":
        made.keep("spec.clusterQueue", "the jobs name the Queue itself")
    elif group in (_KUEUE, "kueueweb.io"):
        made.lose("kind", f"Volcano has no {kind}")
    elif kind in ("Job", "JobSet") and keys.QUEUE_NAME in labels and group != "batch.volcano.sh":
        _export_job(content, queues, made)
    else:
        made.manifests.append(dict(content))
    return made


class _Queues:
    """The queues of a request: their tree, their amounts, and the names by which jobs reach them."""

    def __init__(self, contents: Sequence[Mapping[str, Any]]) -> None:
        kueue = [each for each in contents if str(each.get("apiVersion", "")).startswith(_KUEUE)]
        self._queues = {_name(each): each for each in kueue if each["kind"] in ("ClusterQueue", "Cohort")}
        self._local = {
            (_namespace(each), _name(each)): str(each["spec"].get("clusterQueue"))
            for each in kueue
            if each["kind"] == "LocalQueue"
        }

    def reached_by(self, namespace: str, queue: str) -> str:
        """Return the Queue to which a LocalQueue leads; without it, one of the same name."""
        return self._local.get((namespace, queue), queue)

    def export(self, content: Mapping[str, Any], made: Translation) -> None:
        name, spec = _name(content), content.get("spec") or {}
        annotations = (content.get("metadata") or {}).get("annotations") or {}
        self._report(content, made)
        if name == ROOT:
            made.keep("", "Volcano has its own Queue root, with the capacity of the nodes")
            return
        result: JsonObject = {}
        if weight := (spec.get("fairSharing") or {}).get("weight"):
            result["weight"] = max(1, round(float(weight)))
        elif self._policy(name) == "proportion":
            result["weight"] = 1
        result |= self._claims(name, content, made)
        if (parent := _parent(spec)) and parent != ROOT:
            result["parent"] = parent
        if annotations.get(_NEVER_RECLAIM) == "true":
            result["reclaimable"] = False
        if annotations.get(_QUEUE_PRIORITY):
            result["priority"] = int(annotations[_QUEUE_PRIORITY])
        if spec.get("queueingStrategy") == "StrictFIFO":
            result["dequeueStrategy"] = "fifo"
        made.manifests.append({"apiVersion": _QUEUE, "kind": "Queue", "metadata": {"name": name}, "spec": result})

    def _claims(self, name: str, content: Mapping[str, Any], made: Translation) -> JsonObject:
        whole, cells = self._whole(name, set()), _cells(content, made)
        guarantee = {
            resource: cell["nominal"] - cell["lending"] for resource, cell in cells.items() if "lending" in cell
        }
        capability = {
            resource: whole.get(resource, 0) + cell["borrowing"]
            for resource, cell in cells.items()
            if "borrowing" in cell
        }
        found: JsonObject = {}
        if self._policy(name) != "proportion":
            found["deserved"] = _written({resource: amount for resource, amount in whole.items() if amount})
        elif any(whole.values()) and not guarantee:
            guarantee = {resource: amount for resource, amount in whole.items() if amount}
        if any(guarantee.values()):
            found["guarantee"] = {"resource": _written(guarantee)}
        if capability:
            found["capability"] = _written(capability)
        return {field: value for field, value in found.items() if value}

    def _policy(self, name: str) -> str:
        """Return the sharing policy of the nearest cohort that states one."""
        seen: set[str] = set()
        while name in self._queues and name not in seen:
            seen.add(name)
            content = self._queues[name]
            stated = ((content.get("metadata") or {}).get("annotations") or {}).get(POLICY)
            if stated:
                return str(stated)
            name = _parent(content.get("spec") or {})
        return ""

    def _whole(self, name: str, seen: set[str]) -> Amounts:
        """Return the nominal quotas of a queue and of those below it together."""
        total = {resource: cell["nominal"] for resource, cell in _cells(self._queues[name]).items()}
        seen.add(name)
        for child, content in self._queues.items():
            if _parent(content.get("spec") or {}) == name and child not in seen:
                for resource, amount in self._whole(child, seen).items():
                    total[resource] = total.get(resource, 0) + amount
        return total

    @staticmethod
    def _report(content: Mapping[str, Any], made: Translation) -> None:
        spec = content.get("spec") or {}
        for field in sorted(spec.keys() - _SAID):
            if spec[field] != _DEFAULTS.get(field):
                made.lose(f"spec.{field}", "no field of a Queue")
        for name in sorted((content.get("metadata") or {}).get("annotations") or {}):
            if name.startswith("kueueweb.io/") and name not in _READ_ANNOTATIONS:
                made.lose(f"metadata.annotations[{name}]", "no field of a Queue")
        flavors = {flavor["name"] for group in spec.get("resourceGroups") or () for flavor in group["flavors"]}
        if len(flavors) > 1:
            made.lose("spec.resourceGroups", f"no flavors: the quotas of {', '.join(sorted(flavors))} are added")


def _cells(content: Mapping[str, Any], made: Translation | None = None) -> dict[str, dict[str, int]]:
    """Return the amounts of a queue by resource, the flavors together."""
    found: dict[str, dict[str, int]] = {}
    for group in (content.get("spec") or {}).get("resourceGroups") or ():
        for flavor in group["flavors"]:
            for stated in flavor["resources"]:
                cell = found.setdefault(stated["name"], {"nominal": 0})
                for field, key in (
                    ("nominal", "nominalQuota"),
                    ("lending", "lendingLimit"),
                    ("borrowing", "borrowingLimit"),
                ):
                    if stated.get(key) is None:
                        continue
                    try:
                        cell[field] = cell.get(field, 0) + parse_amount(stated["name"], stated[key])
                    except InvalidQuantity as mistake:
                        if made is not None:
                            made.refuse(f"spec.resourceGroups {stated['name']}.{key}", stated[key], str(mistake))
    return found


def _written(amounts: Amounts) -> JsonObject:
    return {name: format_amount(name, amount) for name, amount in amounts.items()}


def _export_job(content: Mapping[str, Any], queues: _Queues, made: Translation) -> None:
    metadata, spec = metadata_of(content), content.get("spec") or {}
    labels = dict(metadata.get("labels") or {})
    queue = labels.pop(keys.QUEUE_NAME)
    annotations = {name: text for name, text in (metadata.get("annotations") or {}).items() if name != keys.TRANSLATED}
    minimum = annotations.pop(keys.MINIMUM_PARALLELISM, None)
    for name in sorted(name for name in annotations if name.partition("/")[0] in ("kueueweb.io", _KUEUE)):
        made.lose(f"metadata.annotations[{name}]", "no field of a Job")
        del annotations[name]
    tasks = [*_tasks(content, made)]
    total = sum(task["replicas"] for task in tasks)
    made.keep(f"metadata.labels[{keys.QUEUE_NAME}]", "spec.queue")
    result: JsonObject = {
        "schedulerName": "volcano",
        "queue": queues.reached_by(str(metadata.get("namespace") or "default"), queue),
        "minAvailable": int(minimum) if minimum else total,
        "tasks": tasks,
    }
    retries = spec.get("backoffLimit")
    if isinstance(retries, int):
        action = "AbortJob" if retries == 0 else "RestartTask"
        result |= {
            "policies": [{"event": "PodFailed", "action": action}],
            **({"maxRetry": retries + 1} if retries else {}),
        }
        made.keep("spec.backoffLimit", "maxRetry, and a policy on PodFailed")
    if spec.get("ttlSecondsAfterFinished") is not None:
        result["ttlSecondsAfterFinished"] = spec["ttlSecondsAfterFinished"]
    kept = {"name": metadata.get("name"), "generateName": metadata.get("generateName"),
            "namespace": metadata.get("namespace"), "labels": labels, "annotations": annotations}  # fmt: skip
    made.manifests.append(
        {
            "apiVersion": _JOB,
            "kind": "Job",
            "metadata": {name: value for name, value in kept.items() if value},
            "spec": result,
        }
    )


def _tasks(content: Mapping[str, Any], made: Translation) -> Iterator[JsonObject]:
    spec = content.get("spec") or {}
    if content["kind"] == "Job":
        _report_job(spec, "spec", made)
        yield {"name": "default0", **_task(spec, 1)}
        return
    for field in sorted(spec.keys() - {"replicatedJobs", "suspend", "ttlSecondsAfterFinished"}):
        made.lose(f"spec.{field}", "no field of a Job of Volcano")
    for number, part in enumerate(spec.get("replicatedJobs") or ()):
        child, path = part["template"].get("spec") or {}, f"spec.replicatedJobs[{number}]"
        _report_job(child, f"{path}.template.spec", made)
        task = {"name": part["name"], **_task(child, int(part.get("replicas") or 1))}
        if named := [each["name"] for each in part.get("dependsOn") or ()]:
            task["dependsOn"] = {"name": named}
            if any(each.get("status") == "Complete" for each in part["dependsOn"]):
                made.lose(f"{path}.dependsOn", "a task starts when the others run, not when they have ended")
        yield task


def _task(spec: Mapping[str, Any], times: int) -> JsonObject:
    return {"replicas": _parallelism(spec) * times, "template": spec.get("template") or {}}


def _parallelism(spec: Mapping[str, Any]) -> int:
    stated = spec.get("parallelism")
    return 1 if stated is None else int(stated)


def _report_job(spec: Mapping[str, Any], path: str, made: Translation) -> None:
    for field in sorted(spec.keys() - _JOB_FIELDS):
        made.lose(f"{path}.{field}", "no field of a task")
    if spec.get("completions") not in (None, _parallelism(spec)):
        made.lose(f"{path}.completions", "a task has as many pods as run at once")


def _name(content: Mapping[str, Any]) -> str:
    return str((content.get("metadata") or {}).get("name") or "")


def _namespace(content: Mapping[str, Any]) -> str:
    return str((content.get("metadata") or {}).get("namespace") or "default")


def _parent(spec: Mapping[str, Any]) -> str:
    return str(spec.get("cohortName") or spec.get("cohort") or spec.get("parentName") or "")
