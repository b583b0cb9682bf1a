"""Kubernetes' wire format over our rows, so that kubectl and client-go read and change what REST shows."""
