"""Keep values under keys in namespaces."""
