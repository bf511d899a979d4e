"""The five phases in a row: retrieve, verify, fall back, prioritise, budget; with their settings, context and trace."""
