"""What memories in SQL databases share: sealed rows, their keys, and statements that both databases run."""
