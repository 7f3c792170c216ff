"""Trained policies that come with the package; `interverse.rollouts.saved` says which."""

from __future__ import annotations

from interverse.rollouts.saved import SHIPPED, TRAINED, TRAINED_PIXELS, trained_policy

__all__ = ["SHIPPED", "TRAINED", "TRAINED_PIXELS", "trained_policy"]
