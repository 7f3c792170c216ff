"""Tests of the results table."""
