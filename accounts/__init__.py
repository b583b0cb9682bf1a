"""Who is who: clusters, namespaces, users' roles, and what a user may see."""
