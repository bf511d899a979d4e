"""What users can put together today from other people's stock parts, to compare with."""
