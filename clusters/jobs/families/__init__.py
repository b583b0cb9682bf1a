"""What kinds of one family share: those of Kubeflow, of Ray, and those that serve."""
