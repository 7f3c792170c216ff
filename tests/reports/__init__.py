"""Tests of plots and the page."""
