"""The memory experiments: what governed memory promises, measured beside plain stores.

Users, facts and conversations are synthetic, with a seed; answers follow rules, without a language model.

Source: MemoryArchitect, whose section on evaluation names the experiments and gives no figures.
"""
