"""Define a fake model runtime that counts words."""


class WordCountingRuntime:
    """A runtime whose tokens are words; subclasses define `logits`."""

    window = 512

    def __init__(self):
        self.splitter = self

    def count_special(self, *, pair):
        return 3

    def count(self, text):
        return len(text.split())

    def count_many(self, texts):
        return [self.count(text) for text in texts]

    def split_all(self, texts, limit, overlap=0):
        return list(texts), self.count_many(texts), list(range(len(texts)))
