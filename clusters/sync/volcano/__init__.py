"""Objects of Volcano in the cluster, which become jobs of ours."""
