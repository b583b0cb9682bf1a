"""What users may do, and every write of a cluster's settings and namespaces."""
