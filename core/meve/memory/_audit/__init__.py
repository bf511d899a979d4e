"""Records every change in a hash-chained log, and reports from it."""
