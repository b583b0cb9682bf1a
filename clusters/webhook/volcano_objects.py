"""JobFlows and JobTemplates of Volcano: mistakes are told when the object is written, and not only in an annotation."""

from __future__ import annotations

from typing import Final

from clusters.jobs.framework.errors import FieldErrors, invalid
from clusters.jobs.framework.manifest import dig, labels_of
from clusters.manifests.translation.translated import Refusal
from clusters.manifests.translation.volcano_job_flows import flow_mistakes, template_mistakes
from clusters.webhook.reviews import ALLOWED, AdmissionRequest, Verdict, refused_fields
from queues.manifests import kueue_keys as keys

VALIDATE_FLOWS: Final = "/validate/flows"


def review_flow(request: AdmissionRequest) -> Verdict:
    """Refuse a flow with mistakes that names a queue: all others are Volcano's. The mistakes of a template are
    warnings, because flows of both may name it. Whether the templates of a flow exist is not tested: they may follow.
    """
    if dig(request.object, "metadata", "deletionTimestamp") or not _is_changed(request):
        return ALLOWED
    if request.kind == "JobTemplate":
        found = [f"{each.path}: {_detail(each)}" for each in template_mistakes(request.object)]
        return Verdict(warnings=[f"not usable in a JobFlow of a queue: {text}" for text in found])
    if keys.QUEUE_NAME not in labels_of(request.object):
        return ALLOWED
    errors: FieldErrors = [
        invalid(each.path, "" if each.value is None else str(each.value), _detail(each))
        for each in flow_mistakes(request.object)
    ]
    return refused_fields(request, errors) if errors else ALLOWED


def _is_changed(request: AdmissionRequest) -> bool:
    if not request.old:
        return True
    before, now = request.old, request.object
    return before.get("spec") != now.get("spec") or labels_of(before) != labels_of(now)


def _detail(refusal: Refusal) -> str:
    return f"{refusal.rule}. {refusal.remedy}".rstrip(" .")
