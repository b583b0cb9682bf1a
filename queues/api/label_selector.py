"""Label selectors of lists: Kubernetes' grammar, and two match types more, `key^=start` and `key*=part`."""

from __future__ import annotations

import re
from typing import Final

from django.db.models import F, Func, Q, QuerySet, TextField, Value
from django.db.models.lookups import Contains, StartsWith
from rest_framework.exceptions import ValidationError

from queues.models import Workload
from scheduling.manifest.syntax import label_value, qualified_name

MAX_REQUIREMENTS: Final = 10
MAX_LENGTH: Final = 2_048
"""Maximum length of a selector: finding the commas takes quadratic time."""
_BETWEEN: Final = re.compile(r",(?![^(]*\))")
"""The commas that are not within a set's parentheses."""
_SET: Final = re.compile(r"(?P<key>\S+)\s+(?P<operator>in|notin)\s*\((?P<values>[^()]*)\)")
_COMPARISON: Final = re.compile(r"(?P<key>[^!=^*\s]+)\s*(?P<operator>!=|\^=|\*=|==|=)\s*(?P<value>[^!=^*\s]*)")
_GRAMMAR: Final = "Write key, !key, key=value, key!=value, key^=start, key*=part, key in (a,b) or key notin (a,b)."


def label_text(column: str, key: str) -> Func:
    """Read the value of a key from a column of labels or annotations; NULL if it is missing. Django's own lookup reads
    a numeric key as a position in a list."""
    return Func(F(column), Value(key), function="jsonb_extract_path_text", output_field=TextField())


def with_labels(workloads: QuerySet[Workload], parameter: str, text: str) -> QuerySet[Workload]:
    """Return the workloads that match each requirement of the selector; raises ValidationError, which names the
    parameter."""
    if len(text) > MAX_LENGTH:
        rule = f"Too long: {len(text)} characters; at most {MAX_LENGTH} are allowed. Remove some requirements."
        raise ValidationError({parameter: rule})
    parts = [part.strip() for part in _BETWEEN.split(text)]
    if len(parts) > MAX_REQUIREMENTS:
        rule = f"Too many: {len(parts)} requirements; at most {MAX_REQUIREMENTS} are allowed. Remove some."
        raise ValidationError({parameter: rule})
    for part in parts:
        workloads = workloads.filter(_requirement(part, parameter))
    return workloads


def _requirement(text: str, parameter: str) -> Q:
    if found := _SET.fullmatch(text):
        values = [value.strip() for value in found["values"].split(",")]
        _check(parameter, text, found["key"], *values)
        one_of = Q()
        for value in values:
            one_of |= Q(labels__contains={found["key"]: value})
        return one_of if found["operator"] == "in" else ~one_of
    if found := _COMPARISON.fullmatch(text):
        return _compared(found, text, parameter)
    absent = text.startswith("!")
    key = text[absent:].strip()
    _check(parameter, text, key)
    has_it = Q(labels__has_key=key)
    return ~has_it if absent else has_it


def _compared(found: re.Match[str], text: str, parameter: str) -> Q:
    key, operator, value = found["key"], found["operator"], found["value"]
    if operator in {"^=", "*="}:
        _check(parameter, text, key)
        lookup = StartsWith if operator == "^=" else Contains
        return Q(lookup(label_text("labels", key), Value(value)))
    _check(parameter, text, key, value)
    is_so = Q(labels__contains={key: value})
    return ~is_so if operator == "!=" else is_so


def _check(parameter: str, text: str, key: str, *values: str) -> None:
    """Raises ValidationError for text that cannot be a label, as Kubernetes does."""
    rule = qualified_name(key) or next(filter(None, map(label_value, values)), None)
    if rule is not None:
        raise ValidationError(
            {parameter: f"{text!r} cannot be read as a label selector: a key or value {rule}. {_GRAMMAR}"}
        )
