"""The admission webhook: what is changed or refused before the cluster keeps it."""
