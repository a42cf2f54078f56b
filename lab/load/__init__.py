"""The measured client, in a process of its own."""
