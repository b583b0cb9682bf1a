"""The objects of other schedulers in a request, translated together (pure): queues refer to each other, and pods to
their group."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from clusters.manifests.translation.translated import Translation
from clusters.manifests.translation.volcano_job_objects import translate_job
from clusters.manifests.translation.volcano_pod_groups import group_of, translate_pod_group
from clusters.manifests.translation.volcano_queue_objects import translate_queues

JOB: Final = ("batch.volcano.sh/v1alpha1", "Job")
QUEUE: Final = ("scheduling.volcano.sh/v1beta1", "Queue")
POD: Final = ("v1", "Pod")
POD_GROUP: Final = ("scheduling.volcano.sh/v1beta1", "PodGroup")
TRANSLATED_KINDS: Final = (JOB, QUEUE, POD_GROUP)

Content = Mapping[str, Any]


def translate_all(contents: Sequence[Content]) -> dict[int, Translation]:
    """Return the translations by the place of their object. A PodGroup takes the place of its first pod; the places of
    the others, and its own, get an empty one. A PodGroup without pods in the request has none."""
    found: dict[int, Translation] = {}
    queues = [place for place, content in enumerate(contents) if _kind(content) == QUEUE]
    done = _tried(lambda: translate_queues([contents[place] for place in queues]), "Queue")
    found |= dict(zip(queues, done if isinstance(done, list) else [done] * len(queues), strict=True))
    members: dict[tuple[str, str], list[int]] = defaultdict(list)
    for place, content in enumerate(contents):
        if _kind(content) == POD and (name := _group_of(content)):
            members[_key(content)[0], name].append(place)
    for place, content in enumerate(contents):
        if _kind(content) == JOB:
            found[place] = _one(partial(translate_job, content), "Job")
        elif _kind(content) == POD_GROUP:
            found |= _pod_group(place, contents, members.get(_key(content), []))
    return found


def _kind(content: Content) -> tuple[Any, Any]:
    return content.get("apiVersion"), content.get("kind")


def _pod_group(place: int, contents: Sequence[Content], members: list[int]) -> dict[int, Translation]:
    if not members:
        return {}
    made = _one(lambda: translate_pod_group(contents[place], [contents[number] for number in members]), "PodGroup")
    empty = {number: Translation(made.source) for number in (place, *members[1:])}
    return {**empty, members[0]: made}


def _key(content: Content) -> tuple[str, str]:
    metadata = content.get("metadata")
    known = metadata if isinstance(metadata, Mapping) else {}
    return str(known.get("namespace") or "default"), str(known.get("name") or "")


def _group_of(content: Content) -> str:
    try:
        return group_of(content)
    except (AttributeError, TypeError):
        return ""  # the reader of the pod says what is wrong with it


def _one(translate: Callable[[], Translation], kind: str) -> Translation:
    made = _tried(lambda: [translate()], kind)
    return made[0] if isinstance(made, list) else made


def _tried(translate: Callable[[], list[Translation]], kind: str) -> list[Translation] | Translation:
    """Return the translations, or one that refuses an object whose fields have other types than its CRD says."""
    try:
        return translate()
    except (AttributeError, KeyError, TypeError, ValueError) as mistake:
        refused = Translation(kind)
        rule = f"is not the spec of a {kind} of Volcano: {type(mistake).__name__}: {mistake}"
        refused.refuse("spec", None, rule, f"Compare it with the CRD of Volcano's {kind}.")
        return refused
