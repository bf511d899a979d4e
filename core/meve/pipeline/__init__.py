"""Run the five phases: retrieve, verify, fall back, prioritise, budget; with settings, context and trace."""
