"""ACE, in the order of its paper."""
