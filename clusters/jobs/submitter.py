"""The submitter of a job in the cluster: a note on the job that only our webhook can write, from the API server's
request.

The note is signed for one object: for a new object, which has no uid yet, by its name and the time of its creation; for
a job that is queued later, by its uid. A copy of the note on another object, or on a later one of the same name, is
invalid.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from django.conf import settings
from django.utils.crypto import constant_time_compare, salted_hmac

from clusters.jobs.framework.manifest import JsonObject, annotations_of, dig, namespace_of, uid_of
from clusters.jobs.owned_keys import SUBMITTED_BY, SUBMITTED_BY_SIGNATURE

NOTES: Final = (SUBMITTED_BY, SUBMITTED_BY_SIGNATURE)
_SALT: Final = "kueueweb.submitted-by"
_BY_UID: Final = "uid"
"""Replaces the time in a note that is signed by uid."""
_MAX_APART_SECONDS: Final = 300.0
"""Between the webhook's answer and the object's creation; clocks differ."""
_MAX_USERNAME: Final = 150


def submitter_notes(cluster: str, job: JsonObject, username: str, now: float, *, uid: str = "") -> dict[str, str]:
    """Return the annotations that name this user; none if the name does not fit our rows.

    `uid`: of the object, if it exists already.
    """
    if not username or len(username) > _MAX_USERNAME:
        return {}
    metadata = job["metadata"]
    if uid:
        at, signed = _BY_UID, _signed_by_uid(cluster, uid, username)
    else:
        at = str(int(now))
        name = metadata.get("name") or metadata.get("generateName") or ""
        signed = _signed_by_name(cluster, job, name, username, at)
    return {SUBMITTED_BY: username, SUBMITTED_BY_SIGNATURE: f"{at}:{_signature(signed, settings.SECRET_KEY)}"}


def submitter_of(cluster: str, job: Mapping[str, Any]) -> str:
    """Return the user named by a job in the cluster; empty if no credible name is recorded."""
    annotations = annotations_of(job)
    username = annotations.get(SUBMITTED_BY, "")
    at, _, signature = annotations.get(SUBMITTED_BY_SIGNATURE, "").partition(":")
    if not username:
        return ""
    keys = (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)
    expected = (_signature(signed, key) for signed in _acceptable(cluster, job, username, at) for key in keys)
    return username if any(constant_time_compare(signature, each) for each in expected) else ""


def _acceptable(cluster: str, job: Mapping[str, Any], username: str, at: str) -> list[str]:
    """Return the texts, one of which must be signed. A new object may be known by the name or by the prefix of it."""
    if at == _BY_UID:
        return [_signed_by_uid(cluster, uid_of(job), username)]
    created = dig(job, "metadata", "creationTimestamp")
    if not (created and at.isascii() and at.isdigit()):
        return []
    if abs(datetime.fromisoformat(created).timestamp() - int(at)) > _MAX_APART_SECONDS:
        return []
    names = (dig(job, "metadata", "name"), dig(job, "metadata", "generateName"))
    return [_signed_by_name(cluster, job, name, username, at) for name in names if name]


def _signed_by_name(cluster: str, job: Mapping[str, Any], name: str, username: str, at: str) -> str:
    return json.dumps([cluster, job["apiVersion"], job["kind"], namespace_of(job), name, username, at])


def _signed_by_uid(cluster: str, uid: str, username: str) -> str:
    return json.dumps([cluster, uid, username])


def _signature(signed: str, key: str | bytes) -> str:
    return salted_hmac(_SALT, signed, secret=key, algorithm="sha256").hexdigest()
