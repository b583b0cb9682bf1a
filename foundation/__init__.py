"""Tools without a word of the field: locks, transactions, errors, Redis, outgoing HTTP, time series, heartbeats."""
