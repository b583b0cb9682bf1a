"""Volcano's Job (batch.volcano.sh/v1alpha1): its spec, its life and its pods, as in Volcano's job controller."""
