"""Tests of the viewer: its logic without a browser, and the page in a real one."""
