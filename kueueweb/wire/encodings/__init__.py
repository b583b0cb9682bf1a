"""Forms of Kubernetes' wire format other than JSON."""
