"""Turn raw verifier scores into probabilities: calibration maps, their fitting, and threshold selection."""
