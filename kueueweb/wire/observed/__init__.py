"""Objects of the core group that only the cluster and the scheduler write: pods, nodes and events. They can be read."""
