"""The routing experiment: the evidence that routed tiers find per token, the router's accuracy, and abstention."""
