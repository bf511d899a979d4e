"""Import exports of this memory, of mem0 and of LangGraph stores."""
