"""The way of a cluster from a Kueue to us, and back."""
