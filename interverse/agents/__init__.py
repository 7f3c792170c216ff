"""Agents: baselines to train, and planners that use a world model."""
