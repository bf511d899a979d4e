"""Define a fake model runtime that counts words, and a wrapper that records what a runtime reads."""


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


class CountingRuntime:
    """A runtime that counts the pairs which another one reads."""

    def __init__(self, inner):
        self._inner, self.pairs = inner, []

    def __getattr__(self, name):
        return getattr(self._inner, name)

    def logits(self, batches):
        self.pairs += [pair for batch in batches for pair in batch]
        return self._inner.logits(batches)

    def read(self, batches):
        self.pairs += [pair for batch in batches for pair in batch]
        return self._inner.read(batches)
