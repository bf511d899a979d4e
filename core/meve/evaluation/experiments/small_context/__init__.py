"""How much of what a question needs goes into a small model's window, and at how many tokens?"""
