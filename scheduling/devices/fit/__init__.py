"""Whether a pod fits one node's devices, and why not."""
