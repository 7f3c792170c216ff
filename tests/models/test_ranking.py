"""Ranking: against a sort, and the rank that a collapsed encoder cannot win."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from interverse.core.errors import InvalidValueError
from interverse.data import load_dataset, splits
from interverse.models import ranking
from interverse.models.datasets import dataset_source
from interverse.models.ranking import HORIZONS, evaluate_ranking, rank_unchanged, ranks
from interverse.models.source import ArraySource
from interverse.models.world_model import WorldModel
from interverse.worlds import WORLDS


@given(st.integers(0, 2**31), st.integers(1, 40), st.integers(1, 4))
def test_ranks_equal_those_of_a_stable_sort(seed, count, width):
    rng = np.random.default_rng(seed)
    # Whole numbers: distances are exact, and ties are common.
    true, predicted = rng.integers(-3, 4, (2, count, width)).astype(np.float32)
    found = ranks(torch.as_tensor(true), torch.as_tensor(predicted))
    distances = ((true[:, None] - predicted[None]) ** 2).sum(-1)
    for i, row in enumerate(distances):
        first = np.insert(np.delete(row, i), 0, row[i])  # ties favour the own prediction
        last = np.append(np.delete(row, i), row[i])  # ties count against it
        assert found.published[i] == 1 + np.argsort(first, kind="stable").tolist().index(0)
        assert found.own[i] == 1 + np.argsort(last, kind="stable").tolist().index(count - 1)


def test_chunks_do_not_change_ranks(monkeypatch):
    true, predicted = torch.randn(2, 57, 8, generator=torch.Generator().manual_seed(0))
    whole = ranks(true, predicted)
    monkeypatch.setattr(ranking, "_ROWS", 10)
    for a, b in zip(whole, ranks(true, predicted), strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize("place", [0.0, 0.5, 100.5])
@pytest.mark.parametrize("spread", [1.0, 1e-4])
def test_ranks_do_not_depend_on_offset_and_spread(place, spread):
    noise = torch.Generator().manual_seed(0)
    true = place + spread * torch.randn(300, 64, generator=noise)
    predicted = true + 0.1 * spread * torch.randn(300, 64, generator=noise)
    found = ranks(true, predicted)
    assert found.own.tolist() == [1] * 300
    assert found.published.tolist() == [1] * 300


def test_one_prediction_for_all_is_a_tie_wherever_it_lies():
    noise = torch.Generator().manual_seed(0)
    true, same = torch.randn(257, 37, generator=noise), torch.randn(1, 37, generator=noise)
    found = ranks(true, same.repeat(257, 1))
    assert found.own.tolist() == [257] * 257
    assert found.published.tolist() == [1] * 257


def test_equal_pictures_are_not_held_against_a_perfect_model():
    true = torch.tensor([[0.0], [1.0], [0.0], [1.0]])
    assert ranks(true, true).own.tolist() == [2, 2, 2, 2]
    found = ranks(true, true, pictures=torch.tensor([7, 8, 7, 8]))
    assert found.own.tolist() == [1, 1, 1, 1]


def test_a_nearer_prediction_of_the_same_picture_is_the_target_too():
    true = torch.tensor([[0.0], [0.0], [5.0]])
    predicted = torch.tensor([[0.2], [0.1], [5.0]])
    found = ranks(true, predicted, pictures=torch.tensor([7, 7, 8]))
    assert found.published.tolist() == [2, 1, 1]
    assert found.own.tolist() == [1, 1, 1]


EVERY = [name for name in WORLDS if name.startswith(("blocks/", "chemistry/")) and splits(name)]


@pytest.mark.parametrize("world", EVERY)
def test_a_predictor_that_knows_the_future_up_to_a_little_noise_hits(world, tmp_path):
    """The state of the true K-th frame plus noise of 1e-3: above 95 % in every world."""
    data = load_dataset(world, "test", folder=tmp_path, episodes=500)
    source = dataset_source(data)
    width = int(data.header.actions)
    noise = torch.Generator().manual_seed(0)
    for horizon in HORIZONS:
        frames = torch.arange(500) * (source.num_steps + 1) + horizon
        pictures = ranking.pictures_of(source, frames)
        kinds = torch.unique(pictures, return_inverse=True)[1]
        codes = torch.randn(int(kinds.max()) + 1, width, generator=noise)
        error = 1e-3 * torch.randn(len(kinds), width, generator=noise)
        for place in (0.0, 1000.0):  # encodings need not lie around zero
            true = codes[kinds] + place  # any encoding that tells pictures apart
            found = ranks(true, true + error, pictures)
            assert (found.own == 1).double().mean() > 0.95


class _Collapsed(torch.nn.Module):
    def forward(self, images):
        return torch.zeros(len(images), 3, 4)


def test_evaluation_takes_first_frame_actions_and_kth_frame(squares, tiny):
    images, actions, _ = squares(30, 10, seed=3)
    source = ArraySource(images, actions)
    model = WorldModel.seeded(tiny("ae", "nll"), seed=0).eval()
    scores = evaluate_ranking(model, source, horizons=(1, 5))
    for k, score in scores.items():
        frames = torch.as_tensor(images).movedim(-1, 2).float() / 255
        state = model.encode(frames[:, 0])
        for t in range(k):
            state = model.predict(state, torch.as_tensor(actions[:, t]))
        distances = torch.cdist(model.encode(frames[:, k]).flatten(1), state.flatten(1))
        best = (distances.argmin(1) == torch.arange(30)).double().mean()
        assert score.published_hits == pytest.approx(100 * float(best))
        logits = model.decode(state)
        bce = torch.nn.functional.binary_cross_entropy_with_logits(logits, frames[:, k])
        assert score.reconstruction == pytest.approx(bce.item(), rel=1e-5)
        assert score.references == 30


def test_a_collapsed_model_shows_in_our_score(squares, tiny):
    source = ArraySource(*squares(30, 2, seed=3)[:2])
    model = WorldModel.seeded(tiny(), seed=0)
    model.encoder = _Collapsed()
    for parameter in model.transition.parameters():
        parameter.data.zero_()
    score = evaluate_ranking(model, source, horizons=(1,))[1]
    assert score.published_hits == 100.0
    assert score.hits == 0.0
    assert score.mrr < 10.0


def test_states_that_are_not_numbers_are_refused():
    """Compared with a NaN nothing is nearer: a diverged model would score 100 %."""
    bad = torch.tensor([[0.0], [float("nan")]])
    with pytest.raises(InvalidValueError, match="not numbers"):
        ranks(bad, bad)


@pytest.mark.parametrize("wrong", [5, 1.5, 0])
def test_a_horizon_that_the_data_have_not_is_refused(wrong, squares, tiny):
    source = ArraySource(*squares(4, 4, seed=0)[:2])
    told = rf"a horizon is {wrong}. Allowed: a whole number from 1 to 4"
    with pytest.raises(InvalidValueError, match=told):
        evaluate_ranking(WorldModel.seeded(tiny(), 0), source, horizons=(1, wrong))
    with pytest.raises(InvalidValueError, match=told):
        rank_unchanged(source, horizons=(1, wrong))


def test_unchanged_pictures_rank_as_all_their_pixels_do():
    source = dataset_source(load_dataset("blocks/observed-3-v1", "test", episodes=60))
    starts = torch.arange(60) * (source.num_steps + 1)
    first, true = (source.frames(starts + k).flatten(1).double() for k in (0, 5))
    distances = torch.cdist(true, first, compute_mode="donot_use_mm_for_euclid_dist")
    nearest = distances.argmin(1) == torch.arange(60)
    found = rank_unchanged(source, horizons=(5,))[5]
    assert found.published_hits == pytest.approx(100.0 * float(nearest.double().mean()))
    assert 10.0 < found.hits < 90.0


def test_actions_beyond_a_model_are_not_scored_as_none(squares, tiny):
    source = ArraySource(*squares(20, 4, seed=0)[:2])
    with pytest.raises(InvalidValueError, match="knows 10: 2 objects x 5"):
        evaluate_ranking(WorldModel.seeded(tiny(objects=2), 0), source, horizons=(1, 4))
    model = WorldModel.seeded(tiny(objects=2), 0).eval()
    with pytest.raises(InvalidValueError, match="actions from 10 to 10"):
        model.predict(model.encode(source.frames(torch.arange(1))), torch.tensor([10]))
