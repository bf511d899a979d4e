"""Store LangGraph items in a governed memory: `MeVeStore`, its tenancy, TTLs and namespace queries."""
