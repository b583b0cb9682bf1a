"""The objects of other schedulers in a request, translated together (pure): queues refer to each other, and pods to
their group."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final

from clusters.manifests.translation.kai_pods import is_of_kai, translate_kai_pods
from clusters.manifests.translation.kai_queues import KAI_QUEUE, translate_kai_queues
from clusters.manifests.translation.translated import Translation
from clusters.manifests.translation.volcano_field_types import can_join_a_group, template_type_mistakes, without_nulls
from clusters.manifests.translation.volcano_job_flows import named_flows, translate_flow
from clusters.manifests.translation.volcano_job_objects import translate_job
from clusters.manifests.translation.volcano_pod_groups import group_of, translate_pod_group
from clusters.manifests.translation.volcano_queue_objects import translate_queues
from clusters.manifests.translation.yunikorn_queues import is_yunikorn, translate_yunikorn

JOB: Final = ("batch.volcano.sh/v1alpha1", "Job")
QUEUE: Final = ("scheduling.volcano.sh/v1beta1", "Queue")
POD: Final = ("v1", "Pod")
POD_GROUP: Final = ("scheduling.volcano.sh/v1beta1", "PodGroup")
JOB_FLOW: Final = ("flow.volcano.sh/v1alpha1", "JobFlow")
JOB_TEMPLATE: Final = ("flow.volcano.sh/v1alpha1", "JobTemplate")

Content = Mapping[str, Any]


def translate_all(contents: Sequence[Content]) -> dict[int, Translation]:
    """Return the translations by the place of their object.

    A PodGroup takes the place of its first pod; the places of its other pods, and its own place, get an empty
    translation. A PodGroup without pods in the request has no translation, and neither has a JobTemplate that no
    JobFlow names.
    """
    found: dict[int, Translation] = {}
    queues = [place for place, content in enumerate(contents) if _kind(content) == QUEUE]
    found |= dict(zip(queues, translate_queues([contents[place] for place in queues]), strict=True))
    members: dict[tuple[str, str], list[int]] = defaultdict(list)
    for place, content in enumerate(contents):
        if _kind(content) == POD and can_join_a_group(content) and (name := group_of(content)):
            members[_key(content)[0], name].append(place)
    for place, content in enumerate(contents):
        if _kind(content) == JOB:
            found[place] = translate_job(content)
        elif _kind(content) == POD_GROUP:
            found |= _pod_group(place, contents, members.get(_key(content), []))
    return found | _flows(contents)


def translate_files(contents: Sequence[Content]) -> dict[int, Translation]:
    """Return the translations of `translate_all`, and those of formats that only `convert` takes: YuniKorn's
    queues.yaml, pods and jobs of KAI, and KAI's Queues, of which the first has the place of all."""
    found = translate_all(contents)
    for place, content in enumerate(contents):
        if is_yunikorn(content):
            found[place] = translate_yunikorn(content)
        elif place not in found and is_of_kai(content):
            found[place] = translate_kai_pods(content)
    kai = [place for place, content in enumerate(contents) if _kind(content) == KAI_QUEUE]
    if kai:
        found |= {place: Translation(" ".join(KAI_QUEUE)) for place in kai}
        found[kai[0]] = translate_kai_queues([contents[place] for place in kai])
    return found


def _kind(content: Content) -> tuple[Any, Any]:
    return content.get("apiVersion"), content.get("kind")


def _pod_group(place: int, contents: Sequence[Content], members: list[int]) -> dict[int, Translation]:
    if not members:
        return {}
    made = translate_pod_group(contents[place], [contents[number] for number in members])
    empty = {number: Translation(made.source) for number in (place, *members)}
    return {**empty, place if made.refusals else members[0]: made}


def _flows(contents: Sequence[Content]) -> dict[int, Translation]:
    """Return the translations of JobFlows. The places of the JobTemplates that they name get an empty one, or one with
    the mistakes in the types of their fields."""
    templates = {_key(content): place for place, content in enumerate(contents) if _kind(content) == JOB_TEMPLATE}
    found: dict[int, Translation] = {}
    for place, content in enumerate(contents):
        if _kind(content) != JOB_FLOW:
            continue
        keys = [(_key(content)[0], name) for name in named_flows(content)]
        mine = {name: templates[namespace, name] for namespace, name in keys if (namespace, name) in templates}
        read = {name: without_nulls(contents[number]) for name, number in mine.items()}
        found |= {number: read_template(read[name]) for name, number in mine.items()}
        if any(found[number].refusals for number in mine.values()):
            found[place] = Translation("JobFlow")  # its jobs cannot be made, and the templates name the mistakes
        else:
            found[place] = translate_flow(content, read)
    return found


def read_template(content: Content) -> Translation:
    """Return a translation of a JobTemplate alone: the mistakes in the types of its fields."""
    made = Translation("JobTemplate")
    made.refuse_all(template_type_mistakes(content))
    return made


def _key(content: Content) -> tuple[str, str]:
    metadata = content.get("metadata")
    known = metadata if isinstance(metadata, Mapping) else {}
    return str(known.get("namespace") or "default"), str(known.get("name") or "")
