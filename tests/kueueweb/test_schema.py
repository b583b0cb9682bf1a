"""docs/openapi.json is the document of this code: the front end's types are made from it."""

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from kueueweb.api.examples import ERRORS, REQUESTS, TAGS, answers
from kueueweb.api.schema import success_of
from tests.api_client import schema

DOCUMENT = Path(__file__).parents[2] / "docs" / "openapi.json"


def test_no_drift() -> None:
    assert json.loads(DOCUMENT.read_text()) == json.loads(json.dumps(schema(), default=str)), (
        "run `manage.py spectacular --format openapi-json --file docs/openapi.json`"
    )


def test_every_operation_says_how_it_fails() -> None:
    for path, operations in schema()["paths"].items():
        for method, operation in operations.items():
            assert {"400", "401", "403", "404", "503"} <= operation["responses"].keys(), f"{method} {path}"


def test_every_operation_has_a_summary_and_every_tag_says_what_it_is() -> None:
    """A19."""
    document = schema()
    operations = [operation for item in document["paths"].values() for operation in item.values()]
    assert [each["operationId"] for each in operations if not 0 < len(each.get("summary", "")) <= 106] == []
    used = {tag for each in operations for tag in each["tags"]}
    assert [tag["name"] for tag in document["tags"]] == sorted(used) == sorted(TAGS)


def test_every_error_has_an_example() -> None:
    """A19."""
    document = schema()
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            for code in ERRORS:
                answer = operation["responses"].get(str(code))
                for content in (answer or {}).get("content", {}).values():
                    assert content["examples"]["error"]["$ref"] == f"#/components/examples/Error{code}", (method, path)


@pytest.mark.parametrize(("method", "path"), REQUESTS)
def test_examples_of_requests_have_the_shape_that_the_schema_asks_for(method: str, path: str) -> None:
    document = json.loads(json.dumps(schema(), default=str))
    content = document["paths"][path][method]["requestBody"]["content"]["application/json"]
    Draft202012Validator({**content["schema"], "components": document["components"]}).validate(content["example"])


def test_examples_of_answers_have_the_shape_that_the_schema_promises() -> None:
    """A19. They were answers once; what has become of the address since is what this holds them against."""
    document = json.loads(json.dumps(schema(), default=str))
    assert len(answers()) > 50
    for (method, path), example in answers().items():
        content = success_of(document["paths"][path][method])
        assert content["example"] == example
        mistakes = Draft202012Validator({**content["schema"], "components": document["components"]}).iter_errors(
            example
        )
        assert [f"{method} {path}: {mistake.message}" for mistake in mistakes] == []


@pytest.mark.parametrize("code", ERRORS)
def test_examples_of_errors_have_the_shape_of_errors(code: int) -> None:
    document = json.loads(json.dumps(schema(), default=str))
    error = {"$ref": "#/components/schemas/Error", "components": document["components"]}
    Draft202012Validator(error).validate(ERRORS[code])
