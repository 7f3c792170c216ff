"""Trained policies that come with the package; `interverse.rollouts.shipped` says which."""

from __future__ import annotations

from interverse.rollouts.shipped import SHIPPED, TRAINED, TRAINED_PIXELS, trained_policy

__all__ = ["SHIPPED", "TRAINED", "TRAINED_PIXELS", "trained_policy"]
