"""Foundations: errors, registries, addressed noise, arrays."""
