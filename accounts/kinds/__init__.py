"""The kinds of a whole cluster (namespaces, Kueue's Configuration)."""
