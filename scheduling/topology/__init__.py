"""One flavor's tree of topology domains: what fits where."""
