"""Authentication, the cluster of a request, and the REST resources about users."""
