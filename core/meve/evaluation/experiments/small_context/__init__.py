"""The small-context experiments: how much of the evidence fits into a small model's window, and at how many tokens."""
