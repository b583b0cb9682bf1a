"""The shared parts of the kinds of a family: Kubeflow's, Ray's, and the kinds that serve."""
