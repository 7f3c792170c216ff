"""An exported folder acts as the policy it was made from; the Hub can read its card."""

import importlib.util
import warnings

import numpy as np
import pytest

import interverse as iv
from interverse.agents.policies import trained_policy
from interverse.core.errors import InvalidValueError
from interverse.results import Results

torch = pytest.importorskip("torch")

from interverse.rollouts.exported import (  # noqa: E402
    ExportedPolicy,
    PixelCard,
    PixelPolicy,
    save_onnx,
    save_torchscript,
)


def acts(path, seen):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return torch.jit.load(str(path))(torch.from_numpy(seen)).numpy()


def onnx_acts(path, seen):
    reference = pytest.importorskip("onnx.reference")
    with np.errstate(over="ignore"):  # its ELU works out both branches
        return reference.ReferenceEvaluator(str(path)).run(None, {"observation": seen})[0]


def pixel_policy():
    draw = torch.Generator().manual_seed(0)
    shapes = {"conv.0": (4, 3, 3, 3), "trunk": (6, 4 * 7 * 7), "actor.0": (4, 6)}
    weights = {}
    for name, shape in shapes.items():
        weights[f"{name}.weight"] = torch.randn(shape, generator=draw) / 10
        weights[f"{name}.bias"] = torch.randn(shape[0], generator=draw)
    weights |= {"norm.weight": torch.ones(6), "norm.bias": torch.zeros(6)}
    sizes = {"observation": [3, 20, 20], "image_size": 16, "convolutions": 1, "layers": 1}
    card = PixelCard(**sizes, low=[-1.0, -1.0], high=[1.0, 2.0], trained={})
    return PixelPolicy(card, weights)


def state_policy():
    return ExportedPolicy.load(trained_policy("pushing_2"))


@pytest.mark.parametrize("make", [state_policy, pixel_policy])
def test_both_forms_act_as_the_policy(make, tmp_path):
    """On observations far outside too, where a policy that limits what it sees shows it."""
    policy, draw = make(), np.random.default_rng(0)
    if make is pixel_policy:
        seen = draw.integers(0, 256, (3, 3, 20, 20)).astype(np.uint8)
    else:
        seen = draw.normal(0, 20, (5, len(policy.weights["obs.mean"]))).astype(np.float32)
    path = save_torchscript(policy, tmp_path / "policy.pt")
    np.testing.assert_array_equal(acts(path, seen), policy(seen))
    if importlib.util.find_spec("onnx") is not None:
        path = save_onnx(policy, tmp_path / "policy.onnx")
        np.testing.assert_allclose(onnx_acts(path, seen), policy(seen), atol=1e-5)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run of a few steps with an evaluation in it."""
    pytest.importorskip("stable_baselines3")
    from interverse.protocols.learning import TrainAndEvaluate, train_and_evaluate

    out = tmp_path_factory.mktemp("runs") / "ppo"
    sizes = {"steps": 8, "num_envs": 2, "options": {"max_steps": 5}}
    train_and_evaluate(
        TrainAndEvaluate(task="tutorial/slider-v1", out=out, evaluate_episodes=2, **sizes)
    )
    return out


def test_a_run_becomes_a_folder_to_publish(run, tmp_path):
    pytest.importorskip("imageio_ffmpeg")
    policy = run / "policy"
    scored = iv.evaluate(policy, "tutorial/slider-v1", "P0,P1", episodes=3, out=run / "results")
    folder = iv.export(run)
    assert folder == run / "export"
    names = {"README.md", "policy.json", "policy.safetensors", "policy.pt", "replay.mp4"}
    assert names <= {file.name for file in folder.iterdir()}
    assert Results.from_parquet(folder / "results.parquet").data.equals(scored.data)
    trained = ExportedPolicy.load(policy)
    width = len(trained.weights["obs.mean"])
    seen = np.random.default_rng(0).normal(size=(4, width)).astype(np.float32)
    np.testing.assert_array_equal(acts(folder / "policy.pt", seen), trained(seen))
    again = iv.evaluate(folder, "tutorial/slider-v1", "P0,P1", episodes=3)
    np.testing.assert_array_equal(again.scores("return"), scored.scores("return"))


def test_the_card_reads_as_the_hub_reads_it(run):
    hub = pytest.importorskip("huggingface_hub")
    folder = iv.export(run, run.parent / "card", video=False, onnx=False)
    card = hub.ModelCard.load(folder / "README.md")
    assert card.data.library_name == "interverse"
    found = {(r.dataset_config, r.metric_type): r for r in card.data.eval_results}
    scores = Results.from_parquet(folder / "results.parquet").select(protocol="P0")
    row = found["P0", "return"]
    assert row.metric_value == pytest.approx(scores.scores("return").mean(), abs=1e-6)
    low, high = row.metric_args["interval_95"]
    assert low <= row.metric_value <= high
    assert not (folder / "replay.mp4").exists()
    assert "replay.mp4" not in (folder / "README.md").read_text()


def test_a_card_of_one_episode_names_no_interval(run, tmp_path):
    iv.evaluate(run / "policy", "tutorial/slider-v1", "P0", episodes=1, out=tmp_path / "one")
    folder = iv.export(run, tmp_path / "card", results=[tmp_path / "one"], video=False, onnx=False)
    page = (folder / "README.md").read_text()
    assert '"name": "return"' in page.partition("```")[0]
    assert "NaN" not in page


def test_scores_of_another_policy_are_refused(run, tmp_path):
    iv.evaluate("random", "tutorial/slider-v1", "P0", episodes=1, out=tmp_path / "random")
    with pytest.raises(InvalidValueError, match="another policy"):
        iv.export(run, tmp_path / "card", results=[tmp_path / "random"], video=False)
    with pytest.raises(InvalidValueError, match="holds no policy"):
        iv.export(tmp_path)
