"""Readings of engine, host and GPUs while a measurement runs, taken by a process of their own."""

from lab.telemetry.sampler import Sampler

__all__ = ["Sampler"]
