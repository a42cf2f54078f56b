"""This machine: what it has, the runner's lock, starting and ending a runner."""
