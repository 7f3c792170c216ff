"""Policies and planners."""
