"""What a pod asks for, read from its resource limits and annotations."""
