"""The experiments of `meve bench`."""
