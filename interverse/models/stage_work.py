"""One training stage at work: epochs, validation, the best weights so far."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from typing import Any, final

import numpy as np
import torch
from torch import Tensor

from interverse.core.rng import generator
from interverse.models import checkpoint
from interverse.models.draws import batch_order, draws
from interverse.models.fit import Epoch, Fit, ModelStage
from interverse.models.learner import Learner
from interverse.models.steps import GraphedStep, Step, training_step, validation_step

State = dict[str, Tensor]


@final
class StageWork:
    """One stage on its way: steps, optimiser, best weights.

    Attributes:
        epoch: epochs done.
        lowest: lowest validation loss per member.
        best: the weights that had it, with a leading member axis.
    """

    def __init__(self, learner: Learner, stage: ModelStage, how: Fit, seeds: Sequence[int]) -> None:
        self.learner, self.stage, self.how, self.seeds = learner, stage, how, tuple(seeds)
        self.device = torch.device(how.device)
        self.epoch = 0
        self.lowest: tuple[float, ...] = (math.inf,) * learner.members
        self.best = {name: values.clone() for name, values in learner.state().items()}
        self.objective = stage.objective(learner.module)
        self.trained = learner.trained(stage.parts)
        self.optimizer = _adam(self.trained, how, self.device)
        self.train_feed, self.valid_feed = stage.feeds(learner)
        self._train_step, self._valid_step = self._steps()

    def _steps(self) -> tuple[Step, Step]:
        kind: dict[str, Any] = {"precision": self.how.precision, "compiled": self.how.compile}
        if self.how.compile:
            torch.compiler.reset()  # else earlier models' versions count against its limit
        train = training_step(self.learner, self.objective, self.train_feed, self.optimizer, **kind)
        valid = validation_step(self.learner, self.objective, self.valid_feed, **kind)
        replays = self.how.cuda_graphs and self.stage.needs.graphs is None
        if self.device.type == "cuda" and replays:
            return GraphedStep(train), GraphedStep(valid)
        return train, valid

    def run_epoch(self) -> Epoch:
        """Trains one epoch, validates, keeps the best weights."""
        began = time.perf_counter()
        train = self._train()
        valid = self._validate()
        self.epoch += 1
        self._keep_best(valid)
        return Epoch(
            stage=self.stage.name,
            epoch=self.epoch,
            train=train,
            valid=valid,
            best=self.lowest,
            seconds=time.perf_counter() - began,
        )

    def _train(self) -> tuple[float, ...]:
        seeds = self.seeds if self.how.order_seed is None else (self.how.order_seed,)
        orders = [
            batch_order(self.train_feed.count, seed=seed, stage=self.stage.name, epoch=self.epoch)
            for seed in seeds
        ]
        order = torch.as_tensor(np.stack(orders) if len(orders) > 1 else orders[0])
        self.objective.train()
        mean = self._pass(self._train_step, order, epoch=self.epoch)
        self.train_feed.check()
        return mean

    def _validate(self) -> tuple[float, ...]:
        """Returns the mean of batch means, with the same negatives every time."""
        count = self.valid_feed.count
        order = torch.arange(count)
        if self.how.validation_order == "shuffled":
            order = torch.as_tensor(
                batch_order(count, seed=self.how.order_seed or 0, stage="validation", epoch=0)
            )
        if self.how.order_seed is None and self.learner.members > 1:
            order = order.expand(self.learner.members, -1)
        self.objective.eval()
        mean = self._pass(self._valid_step, order, epoch=None)
        self.valid_feed.check()
        return mean

    def _pass(self, step: Step, order: Tensor, *, epoch: int | None) -> tuple[float, ...]:
        """Returns the mean loss per member over all batches; epoch None means validation."""
        name = f"fit/{self.stage.name}/{'valid' if epoch is None else 'train'}"
        at = 0 if epoch is None else epoch
        batches = order.to(self.device).split(self.stage.batch_size, dim=-1)
        sizes = [chosen.shape[-1] for chosen in batches]
        numbers = draws(
            self.stage.needs, sizes, seeds=self.seeds, name=name, epoch=at, device=self.device
        )
        total = torch.zeros(self.learner.members, device=self.device)
        with torch.random.fork_rng(devices=_cuda(self.device)):
            # Dropout draws from torch's own generator; inside the fork it is a function of this.
            rng = generator(seed=self.seeds[0], name=f"{name}/dropout", episode=at)
            torch.manual_seed(int(rng.integers(2**62)))
            for chosen, draw in zip(batches, numbers, strict=True):
                if epoch is None:
                    draw = draw._replace(structural=False)
                total += step(chosen, draw)
        return tuple(float(value) for value in total / len(batches))

    def _keep_best(self, valid: Sequence[float]) -> None:
        better = [new < old for new, old in zip(valid, self.lowest, strict=True)]
        for name, values in self.learner.state().items():
            for index, improved in enumerate(better):
                if improved:
                    self.best[name][index].copy_(values[index])
        self.lowest = tuple(
            new if improved else old
            for new, old, improved in zip(valid, self.lowest, better, strict=True)
        )

    def tensors(self) -> State:
        """Returns best weights and optimiser state under prefixed names."""
        best = {f"best/{name}": values for name, values in self.best.items()}
        adam = {
            f"adam/{name}/{key}": value
            for name, parameter in self.trained.items()
            for key, value in self.optimizer.state.get(parameter, {}).items()
        }
        return best | adam

    def restore(self, found: checkpoint.Progress) -> None:
        """Goes back to a saved epoch; the learner's weights are loaded by the run."""
        self.epoch = found.epoch
        self.lowest = tuple(math.inf if value is None else value for value in found.best)
        for name, values in under(found.tensors, "best").items():
            self.best[name].copy_(values)
        for key, value in under(found.tensors, "adam").items():
            name, _, field = key.rpartition("/")
            parameter = self.trained[name]
            if field == "step":
                self.optimizer.state[parameter][field] = value.to(parameter.device)
            else:  # in the parameter's memory order, as the optimiser makes it
                self.optimizer.state[parameter][field] = torch.empty_like(parameter).copy_(value)


def _adam(trained: Mapping[str, Tensor], how: Fit, device: torch.device) -> torch.optim.Adam:
    return torch.optim.Adam(
        list(trained.values()),
        lr=how.learning_rate,
        fused=True,
        capturable=device.type == "cuda",
    )


def _cuda(device: torch.device) -> list[int]:
    return [] if device.type != "cuda" else [device.index or 0]


def under(tensors: Mapping[str, Tensor], prefix: str) -> State:
    """Returns the tensors whose names start with a prefix and a slash, without it."""
    start = prefix + "/"
    return {k.removeprefix(start): v for k, v in tensors.items() if k.startswith(start)}


def adam_tensors(optimizer: torch.optim.Adam, prefix: str) -> dict[str, Tensor]:
    """Returns the state as `prefix/number/field`, parameters counted in their order."""
    return {
        f"{prefix}/{number}/{name}": value
        for number, fields in optimizer.state_dict()["state"].items()
        for name, value in fields.items()
    }


def restore_adam(optimizer: torch.optim.Adam, tensors: Mapping[str, Tensor], prefix: str) -> None:
    """Puts back what `adam_tensors` gave."""
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    for key, value in under(tensors, prefix).items():
        number, _, name = key.partition("/")
        parameter = parameters[int(number)]
        # Fused updates walk through memory, so moments must lie in the parameter's order.
        place = torch.empty_like(parameter) if value.shape == parameter.shape else None
        held = value.to(parameter.device) if place is None else place.copy_(value)
        optimizer.state[parameter][name] = held.detach()
