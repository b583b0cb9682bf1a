"""schemathesis over the whole API: `python -m tests.acceptance.fuzz_api`."""
