"""The kinds of a whole cluster (namespaces, Kueue's Configuration), and the framework that declares kinds."""
