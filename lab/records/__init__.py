"""Frozen values that cross modules: what was asked, sent, sampled and measured. A leaf: imports nothing of lab."""
