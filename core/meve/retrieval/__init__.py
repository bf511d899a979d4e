"""Five-phase retrieval over a corpus of your own (`retriever`) or over a store that others keep (`external_store`)."""
