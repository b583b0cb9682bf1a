"""Kubernetes' rules for names, with its API server's messages."""

from __future__ import annotations

import re
from typing import Final

from clusters.jobs.framework.errors import FieldErrors, invalid, required, too_long

MAX_LABEL_VALUE: Final = 63
_MAX_SUBDOMAIN: Final = 253
_MAX_GATE: Final = 63
_LABEL: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = rf"{_LABEL}(\.{_LABEL})*"
_QUALIFIED: Final = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_HTTP_PATH: Final = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+"
_SUBDOMAIN_RULE: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    f"end with an alphanumeric character (e.g. 'example.com', regex used for validation is '{_SUBDOMAIN}')"
)
_QUALIFIED_RULE: Final = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    f"(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{_QUALIFIED}')"
)


def subdomain_problems(text: str) -> list[str]:
    """Return the reasons why a text is no RFC 1123 subdomain."""
    problems = []
    if len(text.encode()) > _MAX_SUBDOMAIN:
        problems.append(f"must be no more than {_MAX_SUBDOMAIN} bytes")
    if not re.fullmatch(_SUBDOMAIN, text, re.ASCII):
        problems.append(_SUBDOMAIN_RULE)
    return problems


def is_label(text: str) -> bool:
    """Return whether the text is an RFC 1123 label."""
    return len(text) <= MAX_LABEL_VALUE and re.fullmatch(_LABEL, text, re.ASCII) is not None


def is_label_value(text: str) -> bool:
    return len(text) <= MAX_LABEL_VALUE and (not text or re.fullmatch(_QUALIFIED, text, re.ASCII) is not None)


def label_name_problems(text: str) -> list[str]:
    """Return the reasons why a text is not a label key: `name` or `prefix/name`."""
    parts = text.split("/")
    if len(parts) > 2:
        prefix = "an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return [f"a qualified name {_QUALIFIED_RULE} with {prefix}"]
    problems = []
    if len(parts) == 2:
        prefix_problems = subdomain_problems(parts[0]) if parts[0] else ["must be non-empty"]
        problems += [f"prefix part {problem}" for problem in prefix_problems]
    name = parts[-1]
    if not name:
        problems.append("name part must be non-empty")
    elif len(name.encode()) > MAX_LABEL_VALUE:
        problems.append(f"name part must be no more than {MAX_LABEL_VALUE} bytes")
    if not re.fullmatch(_QUALIFIED, name, re.ASCII):
        problems.append(f"name part {_QUALIFIED_RULE}")
    return problems


def check_label_name(field: str, text: str) -> FieldErrors:
    return [invalid(field, text, problem) for problem in label_name_problems(text)]


def check_subdomain(field: str, text: str) -> FieldErrors:
    problems = subdomain_problems(text)
    return [invalid(field, text, ",".join(problems))] if problems else []


def check_gate(field: str, gate: str) -> FieldErrors:
    """Check an admission gate, which is a path under a domain, like `managedBy`."""
    errors = _check_domain_path(field, gate)
    if len(gate.encode()) > _MAX_GATE:
        errors.append(too_long(field, _MAX_GATE))
    return errors


def _check_domain_path(field: str, text: str) -> FieldErrors:
    if not text:
        return [required(field, "")]
    domain, slash, path = text.partition("/")
    if not (domain and slash and path):
        return [invalid(field, text, 'must be a domain-prefixed path (such as "acme.io/foo")')]
    errors = [invalid(field, domain, problem) for problem in subdomain_problems(domain)]
    if not re.fullmatch(_HTTP_PATH, path, re.ASCII):
        errors.append(invalid(field, path, f"Invalid path (regex used for validation is '{_HTTP_PATH}')"))
    return errors
