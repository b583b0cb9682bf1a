"""An upgrade from any commit, under load: `python -m tests.acceptance.upgrade --from main~20`."""
