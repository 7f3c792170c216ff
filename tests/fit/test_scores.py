"""Graph recovery: the world in a model's place is perfect, a model without change has no edge."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from interverse.fit.materials import Materials, model_config
from interverse.fit.scores import baselines, recovered, recovery
from interverse.fit.settings import budget
from interverse.models.effects import ModelRespondent, TrueWorld
from interverse.models.heads import Probe
from interverse.models.world_model import WorldModel

WORLDS = ["blocks/observed-3-v1", "chemistry/chain-v1", "chemistry/full-v1"]


@pytest.fixture
def materials(request, tmp_path):
    sizes = replace(budget("smoke", "nll"), trials=4000)
    return Materials(request.param, sizes, device="cpu", folder=tmp_path)


@pytest.mark.parametrize("materials", WORLDS, indirect=True)
def test_the_simulator_in_a_models_place_recovers_everything(materials):
    graph = materials.graph
    score = recovered(TrueWorld(graph.trials), graph)
    assert score["edges"]["shd"] == 0
    assert score["total_effect_error"] == 0.0
    assert score["ancestors"]["f1"] == 1.0


@pytest.mark.parametrize("materials", WORLDS, indirect=True)
def test_an_identity_model_has_the_empty_graph(materials):
    model = WorldModel.seeded(model_config(materials, "ae", "contrastive"), 0)
    with torch.no_grad():
        last = [p for p in model.transition.parameters()][-2:]
        for parameter in last:  # s' = s + f(s, a), and f is zero
            parameter.zero_()
    config = model.config
    graph = materials.graph
    probe = Probe(config.slots * config.slot_width, materials.objects, graph.trials.worlds.values)
    score = recovered(ModelRespondent(model, probe, graph.trials.worlds.images), graph)
    assert np.count_nonzero(score["total_effects"]) == 0
    assert np.count_nonzero(score["direct_effects"]) == 0
    for kind in ("edges", "fixed"):
        assert score[kind]["recall"] == 0.0
        assert score[kind]["shd"] == graph.trials.graph.sum()
    assert score["total_effect_error"] > 0.05


@pytest.mark.parametrize("materials", WORLDS[:2], indirect=True)
def test_mistakes_of_the_probe_are_told_from_those_of_the_model(materials):
    """An untrained encoder and its probe: even the true outcomes seem to move what stays."""
    model = WorldModel.seeded(model_config(materials, "ae", "contrastive"), 0)
    found = recovery(model, materials, seed=1)
    read, no_effect = found["read"], found["counterfactual_ceilings"]["copy of the fact"]
    assert read["counterfactual"]["hits"] > 90.0  # what is predicted is the truth
    assert read["counterfactual"]["effect_error"] > no_effect["effect_error"]
    assert read["total_effect_error"] > 0.0
    assert read["fixed"]["f1"] < found["ceiling"]["fixed"]["f1"]


@pytest.mark.parametrize("materials", WORLDS[:2], indirect=True)
def test_baselines_have_their_printed_names(materials):
    found = baselines(materials, seed=1)
    best = "Greedy" if materials.world.startswith("blocks/") else "Optimal"
    assert set(found) == {"Random", "Nothing", best}
    assert found[best]["1"]["success"] > found["Random"]["1"]["success"]
