"""From an experiment file to arms, trials and their order."""
