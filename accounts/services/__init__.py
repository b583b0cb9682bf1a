"""Users' rights, and every write of a cluster's settings and namespaces."""
