"""Peers for `meve bench`: pipelines of other people's stock parts."""
