"""The parts that the phases are made of: one file a part, heavy imports inside."""
