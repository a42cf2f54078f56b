"""The sampler, in a process of its own: engine metrics, GPU, host."""
