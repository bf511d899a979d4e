"""Share code between the LangChain and LlamaIndex wrappers."""
