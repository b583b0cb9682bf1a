"""The submitter of a job in the cluster: a note on the job that only our webhook can write, from the API server's
request.

The note is signed for this one object and the time of its creation. A copy of it on another object, or on a later one
of the same name, is invalid.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from django.utils.crypto import constant_time_compare, salted_hmac

from clusters.jobs.framework.manifest import JsonObject, annotations_of, dig, namespace_of
from clusters.jobs.owned_keys import SUBMITTED_BY, SUBMITTED_BY_SIGNATURE

NOTES: Final = (SUBMITTED_BY, SUBMITTED_BY_SIGNATURE)
_SALT: Final = "kueueweb.submitted-by"
_MAX_APART_SECONDS: Final = 300.0
"""Between the webhook's answer and the object's creation; clocks differ."""
_MAX_USERNAME: Final = 150


def submitter_notes(cluster: str, job: JsonObject, username: str, now: float) -> dict[str, str]:
    """The annotations that name this user; none if the name does not fit our rows."""
    if not username or len(username) > _MAX_USERNAME:
        return {}
    metadata, at = job["metadata"], str(int(now))
    name = metadata.get("name") or metadata.get("generateName") or ""
    return {SUBMITTED_BY: username, SUBMITTED_BY_SIGNATURE: f"{at}:{_signature(cluster, job, name, username, at)}"}


def submitter_of(cluster: str, job: Mapping[str, Any]) -> str:
    """The user named by a job in the cluster; empty if no credible name is recorded."""
    annotations = annotations_of(job)
    username = annotations.get(SUBMITTED_BY, "")
    at, _, signature = annotations.get(SUBMITTED_BY_SIGNATURE, "").partition(":")
    created = dig(job, "metadata", "creationTimestamp")
    if not (username and created and at.isascii() and at.isdigit()):
        return ""
    if abs(datetime.fromisoformat(created).timestamp() - int(at)) > _MAX_APART_SECONDS:
        return ""
    names = (dig(job, "metadata", "name"), dig(job, "metadata", "generateName"))
    signed = (_signature(cluster, job, name, username, at) for name in names if name)
    return username if any(constant_time_compare(signature, each) for each in signed) else ""


def _signature(cluster: str, job: Mapping[str, Any], name: str, username: str, at: str) -> str:
    signed = [cluster, job["apiVersion"], job["kind"], namespace_of(job), name, username, at]
    return salted_hmac(_SALT, json.dumps(signed), algorithm="sha256").hexdigest()
