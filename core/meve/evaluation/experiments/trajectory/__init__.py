"""The trajectory experiment: which features of a conversation find the turn that a reply answers, and its replies."""
