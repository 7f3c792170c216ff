"""Quaternions against SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from interverse.core import arrays as rotation


@pytest.fixture
def turns():
    return Rotation.random(50, rng=np.random.default_rng(0))


def test_matrix_and_rotate(turns):
    quats = turns.as_quat()
    vectors = np.random.default_rng(1).normal(size=(50, 3))
    assert rotation.matrix(quats) == pytest.approx(turns.as_matrix(), abs=1e-12)
    assert rotation.rotate(quats, vectors) == pytest.approx(turns.apply(vectors), abs=1e-12)


def test_multiply_and_conjugate(turns):
    other = Rotation.random(50, rng=np.random.default_rng(2))
    product = rotation.multiply(turns.as_quat(), other.as_quat())
    assert rotation.matrix(product) == pytest.approx((turns * other).as_matrix(), abs=1e-12)
    back = rotation.multiply(rotation.inverse(turns.as_quat()), turns.as_quat())
    assert np.abs(back) == pytest.approx(np.tile((0, 0, 0, 1), (50, 1)), abs=1e-12)


def test_rotation_vectors(turns):
    vectors = turns.as_rotvec()
    vectors[0] = 0
    quats = rotation.from_rotation_vector(vectors)
    assert rotation.matrix(quats) == pytest.approx(
        Rotation.from_rotvec(vectors).as_matrix(), abs=1e-12
    )
    assert rotation.to_rotation_vector(quats) == pytest.approx(vectors, abs=1e-9)
    assert rotation.to_rotation_vector(-quats) == pytest.approx(vectors, abs=1e-9)


def test_yaw():
    angle = np.linspace(-3, 3, 7)
    expected = Rotation.from_euler("z", angle[:, None]).as_matrix()
    assert rotation.matrix(rotation.from_yaw(angle)) == pytest.approx(expected, abs=1e-12)


def test_order_of_the_simulator(turns):
    quats = turns.as_quat()
    assert np.array_equal(rotation.to_mujoco(quats), turns.as_quat(scalar_first=True))
    assert np.array_equal(rotation.from_mujoco(rotation.to_mujoco(quats)), quats)
