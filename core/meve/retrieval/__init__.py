"""Five-phase retrieval over a corpus of your own (`retriever`) or over an external store (`external_store`)."""
