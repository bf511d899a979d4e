"""Record every change in a hash-chained log, and report from it."""
