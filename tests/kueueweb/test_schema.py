"""docs/openapi.json is the document of this code: the front end's types are made from it."""

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from kueueweb.api.examples import ERRORS, TAGS, examples
from kueueweb.api.problem_details import PROBLEM
from kueueweb.api.schema import success_of
from tests.api_client import answer_of, schema

DOCUMENT = Path(__file__).parents[2] / "docs" / "openapi.json"


def test_no_drift() -> None:
    assert json.loads(DOCUMENT.read_text()) == json.loads(json.dumps(schema(), default=str)), (
        "run `manage.py spectacular --format openapi-json --file docs/openapi.json`"
    )


def test_every_operation_says_how_it_fails() -> None:
    for path, operations in schema()["paths"].items():
        for method, operation in operations.items():
            assert {"400", "401", "403", "404", "503"} <= operation["responses"].keys(), f"{method} {path}"


def test_every_answer_names_its_headers() -> None:
    operations = {(method, path): each for path, item in schema()["paths"].items() for method, each in item.items()}
    successes = {
        (*key, code): answer for key, each in operations.items() for code, answer in each["responses"].items()
        if code.startswith("2")
    }  # fmt: skip
    assert [key for key, answer in successes.items() if "X-Request-ID" not in answer["headers"]] == []
    submission = operations["post", "/api/v1/workloads/"]["responses"]["201"]["headers"]
    assert submission.keys() == {"X-Request-ID", "Warning", "Location", "Idempotency-Replayed"}
    assert operations["get", "/api/v1/workloads/"]["responses"]["200"]["headers"].keys() == {"X-Request-ID"}


def test_refusals_are_said_once() -> None:
    document = schema()
    refusals = {
        answer["$ref"].rpartition("/")[2]
        for item in document["paths"].values()
        for operation in item.values()
        for code, answer in operation["responses"].items()
        if int(code) >= 400
    }
    assert refusals == document["components"]["responses"].keys()


def test_every_operation_has_a_summary_and_every_tag_says_what_it_is() -> None:
    document = schema()
    operations = [operation for item in document["paths"].values() for operation in item.values()]
    assert [each["operationId"] for each in operations if not 0 < len(each.get("summary", "")) <= 106] == []
    used = {tag for each in operations for tag in each["tags"]}
    assert [tag["name"] for tag in document["tags"]] == sorted(used) == sorted(TAGS)


def test_every_error_has_an_example() -> None:
    document = schema()
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            for code in ERRORS:
                for kind, content in (answer_of(operation, code) or {}).get("content", {}).items():
                    if kind == PROBLEM:  # the same with more members, for which the schema has texts
                        continue
                    assert content["examples"]["error"]["$ref"] == f"#/components/examples/Error{code}", (method, path)


def test_examples_have_the_shape_that_the_schema_asks_for_and_promises() -> None:
    """`tests/kueueweb/api/test_examples.py` sends them."""
    document = json.loads(json.dumps(schema(), default=str))
    for (method, path), example in examples().items():
        operation = document["paths"][path][method]
        shown = []
        if "request" in example and not isinstance(example["request"], str):
            shown.append((operation["requestBody"]["content"]["application/json"], example["request"]))
        if "answer" in example:
            shown.append((success_of(operation), example["answer"]))
        for content, body in shown:
            assert content["example"] == body
            validator = Draft202012Validator({**content["schema"], "components": document["components"]})
            assert [f"{method} {path}: {mistake.message}" for mistake in validator.iter_errors(body)] == []


@pytest.mark.parametrize("code", ERRORS)
def test_examples_of_errors_have_the_shape_of_errors(code: int) -> None:
    document = json.loads(json.dumps(schema(), default=str))
    error = {"$ref": "#/components/schemas/Error", "components": document["components"]}
    Draft202012Validator(error).validate(ERRORS[code])
