"""Anyone's world model, by two methods: `encode` and `rollout`.

Nothing else of a model is looked at, but for `abduct`, where it has one. Rows are shown in a random
order and equal pictures once, so that a model can answer from what a row shows and from nothing
else: its place in the batch says nothing.
"""

from __future__ import annotations

import copy
import inspect
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import gymnasium
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from interverse.core.errors import InvalidValueError
from interverse.core.files.tensor_files import read_safetensors
from interverse.core.registry import Entry
from interverse.core.rng import generator
from interverse.envs.build import build_world
from interverse.models.ranking import numbered
from interverse.models.source import to_float
from interverse.models.world_model import WorldModel

_LARGEST = 1e30  # squares of larger numbers would be infinite, and no distance is
_ROWS = 512  # encoded or rolled out together
_NEAR = 1e-3  # of the largest latent: sums of other batch sizes differ in their last bits
_TWINS = 6  # rows, from which on a method is given some of them again
_FAILURES = (TypeError, AttributeError, RuntimeError, ValueError)
_METHODS = {
    "encode": "encode(observations) -> latents, with a leading axis of N",
    "rollout": "rollout(latents, actions) -> latents of shape (N, K, ...), for actions (N, K)",
}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """What happened in N scenes: what `abduct` is given.

    Attributes:
        observations: (N, ...) before the action.
        actions: (N,) what was done.
        outcomes: (N, ...) what was seen then.
    """

    observations: Any
    actions: Any
    outcomes: Any


@final
class OwnModel(nn.Module):
    """A world model of this library as the two methods, on uint8 images (N, H, W, 3)."""

    def __init__(self, model: WorldModel) -> None:
        super().__init__()
        self.model = model

    def encode(self, images: Tensor) -> Tensor:
        """Returns the states (N, slots, width)."""
        return self.model.encode(to_float(images))

    def rollout(self, states: Tensor, actions: Tensor) -> Tensor:
        """Returns (N, K, slots, width): the states after 1..K of the actions."""
        return self.model.rollout(states, actions).transpose(0, 1)


@final
class Abducting(nn.Module):
    """Abduction for any world model: what a fact did beyond its prediction happens again.

    Noise is taken to be added to the model's prediction, in its latent space: the residual of the
    fact (its outcome less what was predicted of it) is carried over to the altered scene. That
    needs no training, and exact noise of another form (chemistry's inverse chances) it only
    approaches.

    Args:
        model: a world model of this library, or anything with `encode` and `rollout` on tensors.
    """

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = OwnModel(model) if isinstance(model, WorldModel) else model

    def encode(self, observations: Any) -> Any:
        """Returns the model's latents."""
        return self.model.encode(observations)

    def rollout(self, latents: Any, actions: Any) -> Any:
        """Returns the model's predictions."""
        return self.model.rollout(latents, actions)

    def abduct(self, fact: Fact) -> _CarriedOver:
        """Returns the model with the residuals of N facts, row by row."""
        expected = self.rollout(self.encode(fact.observations), fact.actions[:, None])[:, -1]
        return _CarriedOver(self, self.encode(fact.outcomes) - expected)


@final
class _CarriedOver:
    """A model's `rollout` with the residual of row i's fact on every prediction of row i."""

    def __init__(self, model: Abducting, residual: Tensor) -> None:
        self._model, self._residual = model, residual

    def rollout(self, latents: Any, actions: Any) -> Any:
        """Returns predictions (N, K, ...) plus residuals (N, ...)."""
        return self._model.rollout(latents, actions) + self._residual[:, None]


@final
class OutsideModel:
    """A model as the scores see it: observations to latents, latents and actions to latents.

    A Torch module is given tensors. Any other model is given NumPy arrays, and tensors where it
    cannot take them; what it encodes to, tensors or arrays, is what its `rollout` is given.

    Args:
        model: has `encode` and `rollout`.
        seed: of the order in which rows are shown.
        device: where tensors are.
    """

    def __init__(self, model: Any, *, seed: int = 0, device: str = "cpu") -> None:
        for name, form in _METHODS.items():
            if not callable(getattr(model, name, None)):
                raise InvalidValueError(f"a {type(model).__name__} has no {name}", allowed=form)
        self.model, self.device, self._seed = model, torch.device(device), seed
        self._rng = generator(seed=seed, name="scoring/order")
        self._tried: set[str] = set()  # methods that were given rows again among others
        self._takes_tensors = isinstance(model, nn.Module)
        self._gives_tensors = self._takes_tensors
        self._rolls, self._in_order = model, False  # whose `rollout` it is, and whether of facts
        if isinstance(model, nn.Module):
            model.to(self.device)

    def untrained(self) -> OutsideModel | None:
        """Returns a copy with fresh weights, or None of what is no Torch module."""
        if not isinstance(self.model, nn.Module):
            return None
        fresh = copy.deepcopy(self.model)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self._seed)
            for module in fresh.modules():
                reset: Callable[[], None] | None = getattr(module, "reset_parameters", None)
                if reset is not None:
                    reset()
                    continue
                for weights in module.parameters(recurse=False):
                    # What cannot be drawn anew is shuffled: the same numbers, and no knowledge.
                    order = torch.randperm(weights.numel(), device=weights.device)
                    weights.data = weights.data.flatten()[order].reshape(weights.shape)
        return OutsideModel(fresh, seed=self._seed, device=str(self.device))

    def abducted(self, fact: Fact) -> OutsideModel | None:
        """Returns the model as a fact leaves it, or None where the model has no `abduct`.

        Its rows are the fact's: row i of what it rolls out is the scene of row i of the fact.
        """
        abduct = getattr(self.model, "abduct", None)
        if not callable(abduct):
            return None
        as_given = self._tensor if self._takes_tensors else np.asarray
        given = Fact(
            observations=as_given(fact.observations),
            actions=as_given(fact.actions),
            outcomes=as_given(fact.outcomes),
        )
        known = copy.copy(self)
        known._rolls, known._in_order = self._call(abduct, given), True
        return known

    def encode(self, observations: NDArray[Any]) -> Tensor:
        """Returns latents (N, ...) of observations; equal pictures are encoded once."""
        back = numbered(observations)
        chosen = np.unique(back, return_index=True)[1]
        order = self._rng.permutation(len(chosen))
        parts = [
            self._encode(observations[chosen[order[start : start + _ROWS]]])
            for start in range(0, len(order), _ROWS)
        ]
        place = torch.as_tensor(np.argsort(order)[back])
        return torch.cat(parts)[place]

    def rollout(self, latents: Tensor, actions: NDArray[Any]) -> Tensor:
        """Returns latents (N, K, ...) after 1..K of the actions, (N, K) or (N, K, width).

        A model that knows facts of its rows is given all of them, in their order.
        """
        count = len(actions)
        order = np.arange(count) if self._in_order else self._rng.permutation(count)
        size = count if self._in_order else _ROWS
        parts = []
        for start in range(0, count, size):
            rows = order[start : start + size]
            parts.append(self._rollout(latents[torch.as_tensor(rows)], actions[rows]))
        return torch.cat(parts)[torch.as_tensor(np.argsort(order))]

    def last(self, latents: Tensor, actions: NDArray[Any]) -> Tensor:
        """Returns flat latents (N, width) after all of the actions (N, K, ...)."""
        return self.rollout(latents, actions)[:, -1].flatten(1).double()

    def flat(self, observations: NDArray[Any]) -> Tensor:
        """Returns flat latents (N, width) of observations, in which distances are taken."""
        return self.encode(observations).flatten(1).double()

    def _encode(self, observations: NDArray[Any]) -> Tensor:
        failed: Exception | None = None
        for tensors in dict.fromkeys((self._takes_tensors, True)):
            given = self._tensor(observations) if tensors else observations
            try:
                found = self._call(self.model.encode, given)
                break
            except _FAILURES as error:
                failed = failed or error
        else:
            assert failed is not None
            raise _refused("encode", failed, given) from failed
        self._takes_tensors = tensors
        self._gives_tensors = isinstance(found, Tensor)
        latents = _checked("encode", found)
        if latents.ndim == 0 or len(latents) != len(observations):
            raise InvalidValueError(
                f"encode gave latents {tuple(latents.shape)} for {len(observations)} observations",
                allowed=_METHODS["encode"],
            )
        self._check_twin("encode", latents, given)
        return latents

    def _rollout(self, latents: Tensor, actions: NDArray[Any]) -> Tensor:
        if self._gives_tensors:
            given: tuple[Any, Any] = (latents.to(self.device), self._tensor(actions))
        else:
            given = (latents.numpy(), actions)
        try:
            found = self._call(self._rolls.rollout, *given)
        except _FAILURES as error:
            raise _refused("rollout", error, *given) from error
        predicted = _checked("rollout", found)
        expected = (*actions.shape[:2], *latents.shape[1:])
        if tuple(predicted.shape) != expected:
            swapped = tuple(predicted.shape) == (expected[1], expected[0], *expected[2:])
            raise InvalidValueError(
                f"rollout gave latents {tuple(predicted.shape)} for actions {tuple(actions.shape)}",
                allowed=str(expected),
                fix="Swap its first two axes" if swapped else "",
            )
        self._check_twin("rollout", predicted, *given)
        return predicted

    def _check_twin(self, method: str, first: Tensor, *given: Any) -> None:
        """Gives every third row again, among other neighbours; raises where most differ."""
        if method in self._tried or len(first) < _TWINS or self._in_order:
            return
        self._tried.add(method)
        rows = np.arange(len(first)) // 3 * 3
        again = self._call(getattr(self.model, method), *(part[rows] for part in given))
        apart = (_checked(method, again) - first)[::3].flatten(1).abs().amax(1)
        apart = apart > _NEAR * first.abs().max()
        if float(apart.double().mean()) > 0.5:
            raise InvalidValueError(
                f"{method} gives other latents when the same rows are given again among others",
                allowed="latents that follow from their own row",
                fix="Take no mean over rows, keep no state between calls, and draw nothing: a"
                " mean of what would be drawn, for instance",
            )

    @torch.no_grad()
    def _call(self, method: Callable[..., Any], *given: Any) -> Any:
        """Returns what a method gives; a module's dropout and batch norm see no other rows."""
        if not isinstance(self.model, nn.Module):
            return method(*given)
        modes = {module: module.training for module in self.model.modules()}
        self.model.eval()
        try:
            return method(*given)
        finally:
            for module, mode in modes.items():
                module.training = mode

    def _tensor(self, values: Any) -> Tensor:
        with warnings.catch_warnings():  # a frame that is only read need not be writable
            warnings.simplefilter("ignore")
            return torch.as_tensor(np.ascontiguousarray(values)).to(self.device)


def _checked(method: str, found: Any) -> Tensor:
    try:
        latents = torch.as_tensor(found).detach().cpu()
    except (TypeError, ValueError, RuntimeError) as error:
        raise InvalidValueError(
            f"{method} gave a {type(found).__name__}",
            allowed="a Torch tensor or a NumPy array",
            fix="Join the parts of a latent into one array, and split it again in rollout",
        ) from error
    if not bool((latents.abs() < _LARGEST).all()):
        raise InvalidValueError(
            f"{method} gave latents that are not numbers, or beyond {_LARGEST:g}"
        )
    return latents


def _refused(method: str, error: Exception, *given: Any) -> InvalidValueError:
    shown = " and ".join(
        f"{type(one).__name__} {one.dtype} {tuple(one.shape)}".replace("torch.", "")
        for one in given
    )
    fix = "In encode, pictures are uint8 (N, H, W, 3): x.movedim(-1, 1).float() / 255, for instance"
    if method == "rollout":
        fix = "Latents come as encode gave them; actions are (N, K)"
    return InvalidValueError(
        f"the model's {method} cannot take {shown}: {type(error).__name__}: {error}",
        allowed=_METHODS[method],
        fix=fix,
    )


# ------------------------------------------------------------------------------ a model by its name


def build_model(
    name: str, id: str, *, options: Mapping[str, Any], weights: Path | None = None
) -> Any:
    """Returns the model that MODULE:BUILD names.

    Args:
        name: BUILD is a model, or a class or function that returns one; it is given those of id,
            observation_shape, actions (how many, or how many numbers an action has) and objects
            (1 where there are none) that it asks for by name.
        id: the world it is for.
        options: of that world.
        weights: a safetensors file, for a Torch module.
    """
    module_name, _, attribute = name.partition(":")
    if not module_name or not attribute:
        raise InvalidValueError(
            f"model is {name!r}",
            allowed="MODULE:BUILD, such as my_model:Own",
            fix="interverse new model my_model writes a first one",
        )
    try:
        model = Entry(name).load()
    except ModuleNotFoundError as error:
        if error.name not in (module_name.partition(".")[0], module_name):
            raise
        raise InvalidValueError(
            f"there is no module {module_name!r}", fix="Call this in its folder"
        ) from error
    except AttributeError as error:
        raise InvalidValueError(f"{module_name} has no {attribute!r}") from error
    if inspect.isclass(model) or not hasattr(model, "rollout"):
        world: Any = build_world(id, 1, options)
        seen, acted = world.observation_space, world.action_space
        if isinstance(seen, gymnasium.spaces.Dict) and "image" in seen.spaces:
            seen = seen["image"]
        discrete = isinstance(acted, gymnasium.spaces.Discrete)
        facts = {
            "id": id,
            "observation_shape": seen.shape,
            "actions": int(acted.n) if discrete else int(acted.shape[0]),
            "objects": int(getattr(world.options, "objects", 1)),
        }
        world.close()
        asked = inspect.signature(model).parameters.values()
        positional = (p for p in asked if p.kind is p.POSITIONAL_OR_KEYWORD)
        unknown = [p.name for p in positional if p.default is p.empty and p.name not in facts]
        if unknown:
            raise InvalidValueError(
                f"{name} asks for {', '.join(unknown)}",
                allowed=", ".join(facts),
                fix="Give the others defaults",
            )
        model = model(**{p.name: facts[p.name] for p in asked if p.name in facts})
    if weights is not None:
        if not isinstance(model, nn.Module):
            raise InvalidValueError(
                f"{name} is no Torch module, and has no weights", fix="Leave weights out"
            )
        try:
            model.load_state_dict(read_safetensors(weights))
        except RuntimeError as error:
            raise InvalidValueError(
                f"{weights} holds the weights of another model than {name}: {error}"
            ) from error
    return model
