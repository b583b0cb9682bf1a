"""The admission webhook: changes and refuses objects before the cluster stores them."""
