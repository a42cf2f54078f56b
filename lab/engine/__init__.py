"""The life of a local engine: definition, command, process, readiness, effective configuration, diagnosis."""
