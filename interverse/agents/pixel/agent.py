"""The base of every pixel agent: networks, optimisers, acting, the policy's step, its state.

A soft actor-critic says how it sees pictures and what else it learns from: see `views` and
`auxiliary`.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, TypeAlias, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from interverse.agents.pixel.augment import (
    augmentation,
    centre_crop,
    check_augmentation,
    random_crop,
)
from interverse.agents.pixel.half import WideAdam
from interverse.agents.pixel.networks import PixelSizes, SoftNetworks
from interverse.agents.training import join, split
from interverse.core.errors import FileFormatError, InvalidValueError
from interverse.core.type_checks import number, validated, whole

Actions: TypeAlias = Callable[[], NDArray[np.float32]]
Pair: TypeAlias = tuple[Tensor, Tensor]  # the values of both critics, (N, 1) each


_Count = Annotated[int, whole(10**12)]
_Part = Annotated[float, number(most=1.0, above=True)]
_Amount = Annotated[float, number(most=1e12, above=True)]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
@validated
class PixelHyper:
    """What every pixel agent shares; the defaults are the paper's."""

    image_size: _Count = 84
    """Pixels that the encoder sees."""
    render_size: _Count = 84
    """Pixels that the world draws; larger where the agent crops at random."""
    frame_stack: _Count = 3
    """Frames of an observation. Table 4 prints 1; the paper's text and all code have 3."""
    filters: _Count = 32
    layers: _Count = 4
    features: _Count = 50
    hidden: _Count = 1024
    batch: _Count = 256
    capacity: _Count = 100_000
    """Frames in the replay buffer: 2.1 GB at 84 pixels."""
    warm_up: _Count = 1000
    """Random actions before learning starts."""
    update_rate: _Amount = 1.0
    """Updates per action."""
    actor_every: _Count = 2
    """Updates from one step of actor, temperature and targets to the next."""
    discount: _Part = 0.99
    encoder_rate: _Amount = 1e-3
    critic_rate: _Amount = 1e-3
    actor_rate: _Amount = 1e-3
    alpha_rate: _Amount = 1e-4
    """Learning rates, of Adam."""
    alpha_momentum: Annotated[float, number(most=1.0, below=True)] = 0.5
    alpha: _Amount = 0.1
    """The temperature at the start."""
    critic_tau: _Part = 0.01
    encoder_tau: _Part = 0.05
    """How far targets move at a step."""

    def __post_init__(self) -> None:
        if self.render_size < self.image_size:
            raise InvalidValueError(
                f"render_size is {self.render_size}", allowed=f"from {self.image_size}"
            )

    def sizes(self, channels: int, actions: int) -> PixelSizes:
        """Returns the shapes of networks for pictures of so many channels."""
        names = ("filters", "layers", "features", "hidden")
        given = {name: getattr(self, name) for name in names}
        return PixelSizes(pictures=(channels, self.image_size), actions=actions, **given)


class PixelBatch(NamedTuple):
    """Transitions: pictures uint8 (N, C, S, S), the rest float32."""

    observations: Tensor
    actions: Tensor  # (N, A) in [-1, 1]
    rewards: Tensor  # (N, 1)
    ends: Tensor  # (N, 1): 1 where the episode terminated; a time limit is no end
    successors: Tensor

    def to(self, device: torch.device) -> PixelBatch:
        """Returns the batch on a device, without waiting for the copy."""
        return PixelBatch(*(part.to(device, non_blocking=True) for part in self))


@dataclass(frozen=True, kw_only=True)
class AgentOptions:
    """Settings that only one kind of agent has; some have none."""


@dataclass(frozen=True, kw_only=True)
@validated
class StrongOptions(AgentOptions):
    """The strong change that some agents learn to look through."""

    strong: Annotated[str, check_augmentation] = "random_convolution"
    """A name of the table, or several joined by +. This one is in the code of SVEA's authors and in
    SODA's paper; SGQN's authors lay photographs over their pictures."""


class PixelLearner(ABC):
    """Learns from pictures, acts on them, and goes on from a saved state.

    Attributes:
        options: the settings of this kind of agent, of its `options_type`.
        networks: everything that acts or is a target.
        extra: modules that only this kind of agent has, by name.
        optimisers: by what they train.
        updates: how many were made.
        returns: steps from an observation of a batch to its successor.
        sequences: whether a batch has the steps between too: all frames as `observations`, actions,
            rewards and ends in a row. Otherwise rewards are added up, discounted.
    """

    options: AgentOptions
    options_type: ClassVar[type[AgentOptions]] = AgentOptions
    sequences: ClassVar[bool] = False
    networks: nn.Module

    def __init__(
        self,
        hyper: PixelHyper,
        sizes: PixelSizes,
        seed: int,
        device: str = "cpu",
        options: AgentOptions | None = None,
    ) -> None:
        self.hyper, self.sizes, self.updates, self.returns = hyper, sizes, 0, 1
        self.options = self.options_type() if options is None else options
        self.device = torch.device(device)
        self.generator = torch.Generator(self.device).manual_seed(seed)
        self.extra = nn.ModuleDict()
        self.optimisers: dict[str, torch.optim.Adam] = {}
        self._side: torch.cuda.Stream | None = None
        if self.device.type == "cuda":
            self._side = torch.cuda.Stream(self.device)
        self._start(seed)

    @abstractmethod
    def _start(self, seed: int) -> None:
        """Makes networks and optimisers on the device."""

    @abstractmethod
    def update(self, batch: PixelBatch) -> dict[str, Tensor]:
        """Learns from a batch; returns the losses, not yet read from the device."""

    @property
    def drawn(self) -> int:
        """How many transitions an update takes from the replay buffer."""
        return self.hyper.batch

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Runs what is inside on a second stream of a GPU, until `join`."""
        if self._side is None:
            yield
            return
        self._side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._side):
            yield

    def join(self) -> None:
        """Waits for what was done aside."""
        if self._side is not None:
            torch.cuda.current_stream().wait_stream(self._side)

    def act(self, pictures: NDArray[np.uint8], *, explore: bool) -> NDArray[np.float32]:
        """Returns actions in [-1, 1] for (N, C, S, S): drawn, or the mean action."""
        return self.begin(pictures, explore=explore)()

    @torch.no_grad()
    def begin(
        self,
        pictures: NDArray[np.uint8],
        *,
        explore: bool,
        fresh: NDArray[np.bool_] | None = None,
    ) -> Actions:
        """Asks for the same without waiting; what it returns waits, and returns the actions.

        Args:
            pictures: (N, C, S, S).
            explore: whether actions are drawn; otherwise nothing is remembered either.
            fresh: which rows begin an episode, for agents that remember; all by default.
        """
        seen = centre_crop(sent(pictures, self.device), self.sizes.pictures[1])
        chosen = self._decide(seen, np.ones(len(seen), bool) if fresh is None else fresh, explore)
        if chosen.device.type != "cuda":
            return chosen.numpy
        there = torch.empty(chosen.shape, pin_memory=True)
        there.copy_(chosen, non_blocking=True)
        done = torch.cuda.Event()
        done.record()

        def wait() -> NDArray[np.float32]:
            done.synchronize()
            return there.numpy()

        return wait

    @abstractmethod
    def _decide(self, seen: Tensor, fresh: NDArray[np.bool_], explore: bool) -> Tensor:
        """Returns actions in [-1, 1] for pictures, on their device."""

    @abstractmethod
    def compile(self) -> None:
        """Has Torch compile what is worth it."""

    def noise(self, count: int) -> Tensor:
        """Returns standard normal numbers for `count` actions."""
        shape = (count, self.sizes.actions)
        return torch.randn(shape, generator=self.generator, device=self.device)

    def adam(self, *parts: nn.Module | Tensor, rate: float, **more: Any) -> torch.optim.Adam:
        """Returns Adam over modules and single tensors; on a GPU one that a graph can hold."""
        on_gpu = self.device.type == "cuda"
        settings = {"fused": True, "capturable": on_gpu, **more}
        kind = WideAdam if on_gpu else torch.optim.Adam
        held = [[one] if isinstance(one, Tensor) else one.parameters() for one in parts]
        return kind(list(itertools.chain(*held)), lr=rate, **settings)

    def state(self) -> dict[str, Tensor]:
        """Returns everything a checkpoint needs, by name."""
        moments = {label: one.state_dict()["state"] for label, one in self.optimisers.items()}
        tree = {
            "networks": self.networks.state_dict(),
            "extra": self.extra.state_dict(),
            "optimisers": moments,
            "generator": self.generator.get_state(),
        }
        return split(tree)[0]

    def load(self, state: Mapping[str, Tensor], updates: int) -> None:
        """Puts a saved state into this agent of the same kind and sizes."""
        try:
            held = join(state)
            self.networks.load_state_dict(held["networks"])
            self.extra.load_state_dict(held.get("extra", {}))
            for label, optimiser in self.optimisers.items():
                moments = held.get("optimisers", {}).get(label, {})
                optimiser.load_state_dict({**optimiser.state_dict(), "state": moments})
            self.generator.set_state(held["generator"])
        except (KeyError, RuntimeError, ValueError) as error:
            raise FileFormatError(
                f"the saved state does not fit this agent: {str(error).splitlines()[0]}",
                fix="Delete the folder to start the run afresh",
            ) from error
        self.updates = updates


class Agent(PixelLearner):
    """A soft actor-critic on pictures; its optimiser `critic` trains the encoder too.

    Attributes:
        view: what the critics see of a picture: all of it, a random crop of the size that the
            encoder reads, or the picture shifted by up to four pixels, its border repeated.
        own_trunk: whether the actor shares the convolutions only.
        squash: whether features pass tanh.
        whole: whether whole kernels start orthogonal, or their centres alone.
    """

    networks: SoftNetworks
    view: ClassVar[Literal["plain", "crop", "shift"]] = "plain"
    own_trunk: ClassVar[bool] = False
    squash: ClassVar[bool] = True
    whole: ClassVar[bool] = False

    def _start(self, seed: int) -> None:
        hyper = self.hyper
        kind = {"own_trunk": self.own_trunk, "squash": self.squash, "whole": self.whole}
        networks = SoftNetworks(self.sizes, seed, alpha=hyper.alpha, **kind)
        self.networks = networks.to(self.device)
        self._shift = augmentation("drq_no_noise")
        if isinstance(self.options, StrongOptions):
            self._strong = augmentation(self.options.strong)
        acting = [part for part in (networks.actor, networks.actor_trunk) if part is not None]
        self.optimisers = {
            "critic": self.adam(networks.critics, rate=hyper.critic_rate),
            "actor": self.adam(*acting, rate=hyper.actor_rate),
            "alpha": self.adam(
                networks.log_alpha, rate=hyper.alpha_rate, betas=(hyper.alpha_momentum, 0.999)
            ),
        }
        encoder = {"params": list(networks.encoder.parameters()), "lr": hyper.encoder_rate}
        self.optimisers["critic"].add_param_group(encoder)
        self._build(torch.Generator().manual_seed(seed))

    def _build(self, generator: torch.Generator) -> None:
        """Adds what only this kind of agent has: modules drawn from `generator`, optimisers."""

    def see(self, pictures: Tensor) -> Tensor:
        """Returns pictures as the critics see them, drawn anew by every call."""
        if self.view == "crop":
            return random_crop(pictures, self.sizes.pictures[1], self.generator)
        return (
            self._shift(pictures, generator=self.generator)[0] if self.view == "shift" else pictures
        )

    def update(self, batch: PixelBatch) -> dict[str, Tensor]:
        """Learns from a batch, o and o' seen apart."""
        target = self.target(batch, self.see(batch.successors))
        return self.learn(target, batch.actions, self.see(batch.observations))

    def target(self, batch: PixelBatch, *successors: Tensor) -> Tensor:
        """Returns reward plus discounted soft value; a time limit is no end."""
        value = self.networks.soft_value(self.noise(len(batch.rewards)), *successors)
        return batch.rewards + self.hyper.discount * (1.0 - batch.ends) * value

    def learn(self, target: Tensor, actions: Tensor, *views: Tensor) -> dict[str, Tensor]:
        """Moves critics and encoder by all views of the observations; the first one is followed."""
        nets, count = self.networks, len(actions)
        flat = nets.encoder.convolve(*views)
        features = nets.encoder.trunk(flat)
        values = nets.critics(features, actions.repeat(len(views), 1))
        loss, told = self._judged(values, target, count)
        descend(self.optimisers["critic"], loss)
        losses = {name: part.detach() for name, part in told.items()}
        return losses | self.follow(features[:count], flat[:count] if self.own_trunk else None)

    def _judged(self, values: Pair, target: Tensor, count: int) -> tuple[Tensor, dict[str, Tensor]]:
        """Returns the loss of the values of all views, `count` rows each, and its parts by name."""
        loss = critic_loss(values, target.repeat(len(values[0]) // count, 1))
        return loss, {"critic": loss}

    def follow(self, features: Tensor, maps: Tensor | None = None) -> dict[str, Tensor]:
        """Counts the update; at every second one moves actor, temperature and targets.

        Args:
            features: the encoder's for the observations; no gradient goes into them, nor into maps.
            maps: the last convolution's, for an actor with a trunk of its own. Without, it reads
                the features, as the critics do.
        """
        self.updates += 1
        if (self.updates - 1) % self.hyper.actor_every:
            return {}
        nets, features = self.networks, features.detach()
        read = features if maps is None else nets.acting(maps)
        choice = nets.actor(read, self.noise(len(features)))
        value = torch.minimum(*nets.critics(features, choice.actions))
        actor = (nets.log_alpha.exp().detach() * choice.log_density - value).mean()
        descend(self.optimisers["actor"], actor)
        excess = -choice.log_density.detach() + float(self.sizes.actions)  # of entropy
        descend(self.optimisers["alpha"], (nets.log_alpha.exp() * excess).mean())
        track(nets.target_critics, nets.critics, self.hyper.critic_tau)
        track(nets.target_encoder, nets.encoder, self.hyper.encoder_tau)
        return {
            "actor": actor.detach(),
            "alpha": nets.log_alpha.detach().exp(),
            "entropy": -choice.log_density.mean().detach(),
        }

    def _decide(self, seen: Tensor, fresh: NDArray[np.bool_], explore: bool) -> Tensor:
        noise = self.noise(len(seen)) if explore else torch.zeros(1, device=self.device)
        read = self.networks.acting(self.networks.encoder.convolve(seen))
        return self.chosen(read, noise, explore=explore)

    def chosen(self, read: Tensor, noise: Tensor, *, explore: bool) -> Tensor:
        """Returns actions for what the actor reads, drawn by standard normal noise or the mean."""
        choice = self.networks.actor(read, noise)
        return choice.actions if explore else choice.mean

    def compile(self) -> None:
        """Has Torch compile actor, critics and what is learned besides; encoders have kernels."""
        nets = self.networks
        heads = [nets.critics, nets.target_critics, nets.actor]
        learned = [part for part in self.extra.values() if list(part.parameters())]
        compile_parts(*heads, *learned)


def sent(array: NDArray[Any], device: torch.device) -> Tensor:
    """Returns an array on a device; the copy is queued behind what a GPU has to do."""
    here = torch.from_numpy(np.ascontiguousarray(array))
    return here.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else here


def compile_parts(*parts: nn.Module) -> None:
    """Has Torch compile modules, each for every shape it meets."""
    from torch._dynamo import config  # seconds to import

    config.recompile_limit = max(config.recompile_limit, 64)  # each size and use is a program
    for part in parts:
        part.compile(dynamic=False)


def descend(
    optimiser: torch.optim.Optimizer,
    loss: Tensor,
    *more: torch.optim.Optimizer,
    clip: float | None = None,
) -> None:
    """Makes one step on a loss; only what the optimisers train gets gradients.

    Args:
        optimiser: makes the step, as do `more`.
        loss: what to lower.
        *more: other optimisers of the same loss.
        clip: the length that the gradient is shortened to.
    """
    every = (optimiser, *more)
    groups = [group for one in every for group in one.param_groups]
    for one in every:
        one.zero_grad(set_to_none=True)
    trained = [tensor for group in groups for tensor in group["params"]]
    loss.backward(inputs=trained)
    if clip is not None:
        nn.utils.clip_grad_norm_(trained, clip)
    for one in every:
        one.step()


@torch.no_grad()
def track(target: nn.Module, online: nn.Module, tau: float) -> None:
    """Moves a target network towards the online one by a fraction."""
    torch._foreach_lerp_(list(target.parameters()), list(online.parameters()), tau)


def critic_loss(values: Pair, target: Tensor) -> Tensor:
    """Returns half the mean squared error of each critic, summed."""
    one, other = (0.5 * functional.mse_loss(value, target) for value in values)
    return one + other
