"""The governed memory as a store of LangGraph's: `MeVeStore`, whose each namespace is, and what operations ask."""
