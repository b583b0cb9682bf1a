"""A REST client that holds every answer against the OpenAPI document."""

import json
import re
from functools import cache
from typing import Any

from drf_spectacular.generators import SchemaGenerator
from jsonschema import Draft202012Validator, FormatChecker
from rest_framework.test import APIClient


class SchemaClient(APIClient):
    """Fails the test when an answer is not what the schema promises for that address, method and status."""

    def request(self, **request: Any) -> Any:
        """Every request of every method passes here."""
        response = super().request(**request)
        path = request["PATH_INFO"]
        if path.startswith("/api/v1/") and path != "/api/v1/schema/":
            _check(request["REQUEST_METHOD"].lower(), path, response)
        return response


@cache
def schema() -> dict[str, Any]:
    """The OpenAPI document, as `manage.py spectacular` writes it."""
    return SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call,no-any-return]  # the library is not typed


def answer_of(operation: dict[str, Any], code: int) -> dict[str, Any] | None:
    """Return the description of an operation's answer with that status; None where the document has none."""
    answer: dict[str, Any] | None = operation["responses"].get(str(code))
    if answer is None or "$ref" not in answer:
        return answer
    shared: dict[str, Any] = schema()["components"]["responses"][answer["$ref"].rpartition("/")[2]]
    return shared


@cache
def _addresses() -> list[tuple[re.Pattern[str], dict[str, Any]]]:
    return [
        (re.compile(re.sub(r"\{\w+\}", "[^/]+", path)), operations)
        for path, operations in sorted(schema()["paths"].items(), key=lambda item: item[0].count("{"))
    ]


@cache
def _validator(content: str) -> Draft202012Validator:
    """The validator of one answer's schema; each walks through all components once."""
    return Draft202012Validator(
        {**json.loads(content), "components": schema()["components"]}, format_checker=FormatChecker()
    )


def _check(method: str, path: str, response: Any) -> None:
    operations = next((operations for pattern, operations in _addresses() if pattern.fullmatch(path)), None)
    assert operations is not None or response.status_code == 404, f"{path} is not in the schema"
    if operations is None or (response.status_code == 405 and method not in operations):
        return
    documented = answer_of(operations[method], response.status_code)
    assert documented, f"{method} {path}: status {response.status_code} is not in the schema: {response.content!r}"
    content = documented.get("content", {}).get("application/json")
    kind = response.headers.get("Content-Type", "").partition(";")[0]
    if content is None or kind != "application/json":
        assert content is None or kind in documented["content"], f"{method} {path}: {kind} is not in the schema"
        return
    validator = _validator(json.dumps(content["schema"]))
    problems = [f"{error.json_path}: {error.message}" for error in validator.iter_errors(response.json())]
    assert not problems, f"{method} {path}: {problems[:5]}"
