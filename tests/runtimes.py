"""In the place of a loaded model: what it reads is counted by words, and what it says a test tells."""


class ByWords:
    """Tokens and windows; `logits` is left to tell."""

    window = 512

    def __init__(self):
        self.windows = self

    def special(self, *, pair):
        return 3

    def count(self, text):
        return len(text.split())

    def counts(self, texts):
        return [self.count(text) for text in texts]
