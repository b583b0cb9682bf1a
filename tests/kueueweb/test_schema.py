"""docs/openapi.json is the document of this code: the front end's types are made from it."""

import json
from pathlib import Path

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
