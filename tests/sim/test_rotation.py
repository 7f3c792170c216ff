"""Rotations of arrays against SciPy, on NumPy and on Torch."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from interverse.core import arrays as rotation
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
