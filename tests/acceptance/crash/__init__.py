"""Random kill -9 of every process while tenants work: `python -m tests.acceptance.crash --minutes 30 --seed 1`."""
