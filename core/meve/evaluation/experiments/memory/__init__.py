"""Does governed memory keep what it promises? The experiments that its paper plans, beside plain stores.

Source: MemoryArchitect, whose section on evaluation names them and gives no figures. Users, facts and talks are
invented, with a seed; answers are given by rule, since no model is asked. `run` has them all.
"""
