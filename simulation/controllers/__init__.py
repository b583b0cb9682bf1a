"""The simulated cluster's controllers and kubelets."""
