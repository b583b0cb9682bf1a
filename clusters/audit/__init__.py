"""The auditor of the books: what quota, devices, pods and the cluster say of each other."""
