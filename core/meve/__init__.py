"""MeVe decides what text may enter a language model's prompt, and accounts for every decision."""
