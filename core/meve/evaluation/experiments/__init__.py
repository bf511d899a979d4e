"""What is measured: the paper's own tables and figures, quality on public sets, speed against size."""
