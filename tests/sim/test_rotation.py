"""Rotations against SciPy's, on NumPy and Torch."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from interverse.core.arrays import cross, inverse, rotate, unit

RNG = np.random.default_rng(3)
QUATERNIONS = Rotation.random(50, rng=RNG).as_quat()
VECTORS = RNG.normal(size=(50, 3))


def test_rotate_and_inverse_are_scipys() -> None:
    turned = rotate(QUATERNIONS, VECTORS)
    np.testing.assert_allclose(turned, Rotation.from_quat(QUATERNIONS).apply(VECTORS), atol=1e-14)
    np.testing.assert_allclose(rotate(inverse(QUATERNIONS), turned), VECTORS, atol=1e-14)
    np.testing.assert_array_equal(cross(VECTORS, turned), np.cross(VECTORS, turned))


def test_unit_scales_to_length_one_and_keeps_what_has_it() -> None:
    np.testing.assert_array_equal(unit(QUATERNIONS), QUATERNIONS)
    np.testing.assert_allclose(unit(3.0 * QUATERNIONS), QUATERNIONS, rtol=1e-15)


def test_torch_gives_numpys_numbers() -> None:
    torch = pytest.importorskip("torch")
    q, v = torch.from_numpy(QUATERNIONS), torch.from_numpy(VECTORS)
    for function, arguments in ((rotate, (q, v)), (unit, (3 * q,)), (inverse, (q,))):
        theirs = function(*(a.numpy() for a in arguments))
        np.testing.assert_allclose(function(*arguments).numpy(), theirs, atol=1e-12)
