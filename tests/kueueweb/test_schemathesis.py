"""schemathesis' requests for every operation, as an admin, a tenant and nobody: the answers are what the schema says.

`make fuzz-api` sends thousands to a server that listens; these are few, and always the same.
"""

from __future__ import annotations

from typing import Any, Final

import pytest
import schemathesis
from django.core.wsgi import get_wsgi_application
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import APIOperation, Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import FailureGroup
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from accounts.models import Cluster
from accounts.services.tokens import create_token
from tests.api_client import schema
from tests.factories import make_cluster_queue
from tests.users import make_user

CHECKS: Final = [
    not_a_server_error, status_code_conformance, content_type_conformance, response_headers_conformance,
    response_schema_conformance, negative_data_rejection,
]  # fmt: skip
pytestmark = pytest.mark.django_db(transaction=True)  # the application ends the transactions of its requests

ENDS_LOGIN: Final = {"auth_tokens_revoke_all", "auth_logout"}
"""They revoke the token that the request carries."""


def operations() -> list[APIOperation[Any, Any, Any, Any]]:
    document = schemathesis.openapi.from_dict(schema())
    document.app = get_wsgi_application()
    found = [result.ok() for result in document.get_all_operations() if isinstance(result, Ok)]
    return [one for one in found if one.definition.raw["operationId"] not in ENDS_LOGIN]


@pytest.fixture
def roles(cluster: Cluster) -> dict[str, dict[str, str]]:
    """The headers of each role."""
    make_cluster_queue(cluster, "queue-0")
    found = {
        role: {"Authorization": f"Bearer {create_token(make_user(name))[0]}"}
        for role, name in (("admin", "alice"), ("tenant", "bob"), ("no role", "nobody"))
    }
    return found | {"no login": {}}


def test_every_answer_is_one_that_the_schema_has(roles: dict[str, dict[str, str]]) -> None:
    broken: list[str] = []
    found = operations()
    assert len(found) > 140
    wrong = 0
    for number, operation in enumerate(found):
        if number % 2 == 0:
            send(operation, GenerationMode.POSITIVE, roles, broken)
            continue
        try:
            send(operation, GenerationMode.NEGATIVE, roles, broken)
            wrong += 1
        except Unsatisfiable:  # an operation that takes any text has nothing that can be wrong
            send(operation, GenerationMode.POSITIVE, roles, broken)
    assert wrong > 40
    assert not broken, "\n".join(broken)


def send(
    operation: APIOperation[Any, Any, Any, Any],
    mode: GenerationMode,
    roles: dict[str, dict[str, str]],
    broken: list[str],
) -> None:
    """One request as each role; what is wrong with the answers goes to `broken`. Raises Unsatisfiable."""

    @settings(
        max_examples=1, derandomize=True, database=None, deadline=None, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(operation.as_strategy(generation_mode=mode))
    def send_case(case: Case[Any]) -> None:
        for role, headers in roles.items():
            try:
                # The transport to an application in this process does not unpack.
                case.call_and_validate(headers={**headers, "Accept-Encoding": "identity"}, checks=CHECKS)
            except FailureGroup as failures:
                broken.append(
                    f"{role}: {case.method} {case.formatted_path}: {[str(one) for one in failures.exceptions]}"
                )

    send_case()
