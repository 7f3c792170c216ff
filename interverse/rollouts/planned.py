"""Latent model of TD-MPC2 (Hansen, Su and Wang), the MPPI search in it, and the policy that plans.

Latents are groups of simplices; rewards and values are distributions over bins; a Gaussian prior
over actions proposes some of the plans that the search compares. A policy of two plain files plans
from each picture alone, with one fixed set of dice, so its action does not depend on other worlds
or on what it did before.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Annotated, Any, NamedTuple, final

from interverse.core.errors import (
    InvalidValueError,
    check_number,
    check_whole,
    missing_extra,
)
from interverse.core.type_checks import Positive, validated, whole
from interverse.rollouts.exported import PicturePolicy, PolicyCard, middle

try:
    import torch
    from torch import Tensor, nn
    from torch.nn import functional
except ImportError as error:
    raise missing_extra("torch", "torch") from error


_KERNELS = ((7, 2), (5, 2), (3, 2), (3, 1))  # side and stride of the authors' convolutions
_LOG_STD = (-10.0, 2.0)
_MOST, _MOST_NUMBERS = 2**12, 2**26  # of a width or count; of a layer's weights, of a search's dice


_Count = Annotated[int, whole(_MOST)]


@dataclass(frozen=True, kw_only=True)
@validated
class PlanOptions:
    """The search, and the distributions it reads; the defaults are the authors'."""

    horizon: _Count = 3
    """Steps that a plan looks ahead, and that the model is trained over."""
    samples: _Count = 512
    """Plans that are compared at once."""
    elites: _Count = 64
    """The best of them, from which the next ones are drawn."""
    policy_paths: int = 24
    """Plans among the samples that the prior makes."""
    iterations: _Count = 6
    """Rounds of drawing plans and comparing them."""
    temperature: Positive = 0.5
    """The weight of an elite is exp(temperature x value)."""
    least_spread: Positive = 0.05
    most_spread: float = 2.0
    """Bounds of the standard deviation of plans; the search starts at the larger one."""
    critics: Annotated[int, whole(_MOST, least=2)] = 5
    """Value networks; each use takes two of them at random."""
    bins: Annotated[int, whole(_MOST, least=2)] = 101
    limit: Positive = 10.0
    """Rewards and values are distributions over bins from -limit to limit of their symlog."""
    group: _Count = 8
    """Numbers of a latent that are one simplex."""

    def __post_init__(self) -> None:
        check_whole(self.policy_paths, "policy_paths", self.samples - 1, least=0)
        check_whole(self.elites, "elites", self.samples)
        check_number(self.most_spread, "most_spread", self.least_spread)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
@validated
class PlanSizes:
    """The shapes of a planning agent's networks.

    Attributes:
        channels: of a stack of frames; `side`: its pixels along an edge.
        actions: numbers of an action.
        filters: of each convolution; `layers`: how many, the last ones of the authors' four.
        hidden: width of both hidden layers of every perceptron.
    """

    channels: _Count
    side: _Count
    actions: _Count
    filters: _Count = 32
    layers: Annotated[int, whole(len(_KERNELS))] = 4
    hidden: _Count = 512

    def __post_init__(self) -> None:
        if self.latent < 1:
            raise InvalidValueError(
                f"pictures of {self.side} pixels vanish in {self.layers} convolutions"
            )
        for name, count in (("latent", self.latent * self.hidden), ("filters", self.filters**2)):
            check_whole(count, f"the size of the layers of {name}", _MOST_NUMBERS)

    @property
    def latent(self) -> int:
        """How many numbers the last convolution gives: they are the latent."""
        side = self.side
        for kernel, stride in _KERNELS[-self.layers :]:
            side = (side - kernel) // stride + 1 if side >= kernel else 0
        return self.filters * side**2


class PlanNoise(NamedTuple):
    """The dice of a search in N worlds, or in any number with the same dice (N = 1)."""

    prior: Tensor  # (N, policy_paths, horizon, A), standard normal like the next two
    paths: Tensor  # (iterations, N, samples - policy_paths, horizon, A)
    last: Tensor  # (iterations, N, samples, A): of the action after a plan
    pairs: Tensor  # (iterations, 2): which value networks are used


class Planned(NamedTuple):
    """The end of a search: mean and spread of the plans, and the elites with their weights."""

    mean: Tensor  # (N, horizon, A)
    spread: Tensor
    elites: Tensor  # (N, elites, horizon, A)
    weights: Tensor  # (N, elites)


class SquashedChoice(NamedTuple):
    """Actions in (-1, 1) of a Gaussian squashed by tanh, and the log density of each."""

    actions: Tensor  # (..., A)
    log_density: Tensor  # (..., 1)


def squashed(mean: Tensor, raw: Tensor, noise: Tensor) -> SquashedChoice:
    """Returns what standard normal noise picks; tanh takes `raw` to the bounds of log spreads."""
    low, high = _LOG_STD
    log_std = low + 0.5 * (high - low) * (torch.tanh(raw) + 1.0)
    x = mean + noise * log_std.exp()
    # log(1 - tanh(x)^2), in a form that does not lose its digits for large x
    slope = 2.0 * (math.log(2.0) - x - functional.softplus(-2.0 * x))
    density = -0.5 * (noise**2 + math.log(2.0 * math.pi)) - log_std - slope
    return SquashedChoice(torch.tanh(x), density.sum(-1, keepdim=True))


@final
class PlanLayers(nn.Module):
    """Perceptrons side by side: linear, layer norm and Mish, the last one linear alone.

    `widths` are the numbers that go in, are inside, and come out. The last layer has a norm too if
    `normed`, and starts with zeros if `still`.
    """

    def __init__(
        self,
        widths: tuple[int, ...],
        generator: torch.Generator,
        *,
        count: int = 1,
        normed: bool = False,
        still: bool = False,
    ) -> None:
        super().__init__()
        self.weights, self.biases = nn.ParameterList(), nn.ParameterList()
        self.gains, self.shifts = nn.ParameterList(), nn.ParameterList()
        for given, made in pairwise(widths):
            self.weights.append(torch.empty(count, given, made))
            nn.init.trunc_normal_(self.weights[-1], std=0.02, generator=generator)
            self.biases.append(torch.zeros(count, 1, made))
        for width in widths[1 : None if normed else -1]:
            self.gains.append(torch.ones(count, 1, width))
            self.shifts.append(torch.zeros(count, 1, width))
        if still:
            nn.init.zeros_(self.weights[-1])

    def forward(
        self, x: Tensor, members: Tensor | None = None, kept: Tensor | None = None
    ) -> Tensor:
        """Returns (count, M, out) for (M, in), in full precision.

        All perceptrons are asked, or some `members`; `kept` are factors of the first layer's
        output.
        """
        with torch.autocast(x.device.type, enabled=False):
            last = len(self.weights) - 1
            x = x.float().expand(len(self.biases[0] if members is None else members), -1, -1)
            for i in range(last + 1):
                x = torch.baddbmm(_of(self.biases[i], members), x, _of(self.weights[i], members))
                x = x if kept is None or i else x * kept
                if i < len(self.gains):
                    x = functional.layer_norm(x, [x.shape[-1]])
                    x = x * _of(self.gains[i], members) + _of(self.shifts[i], members)
                x = functional.mish(x) if i < last else x
            return x


@final
class PlanModel(nn.Module):
    """Encoder, dynamics, rewards, values and prior, and the search in them."""

    def __init__(
        self, sizes: PlanSizes, options: PlanOptions, discount: float, generator: torch.Generator
    ) -> None:
        super().__init__()
        self.sizes, self.options, self.discount = sizes, options, discount
        latent, hidden = sizes.latent, (sizes.hidden, sizes.hidden)
        dice = options.samples * options.iterations * options.horizon * sizes.actions
        check_whole(dice, "samples x iterations x horizon x actions", _MOST_NUMBERS)
        if latent % options.group:
            raise InvalidValueError(
                f"latents of {latent} numbers", allowed=f"multiples of {options.group}"
            )
        channels = (sizes.channels, *[sizes.filters] * sizes.layers)
        self.encoder = nn.ModuleList(
            nn.Conv2d(given, made, kernel, stride)
            for (given, made), (kernel, stride) in zip(
                pairwise(channels), _KERNELS[-sizes.layers :], strict=True
            )
        )
        for layer in self.encoder:  # Torch's own start, without its global randomness
            bound = next(layer.parameters())[0].numel() ** -0.5
            for part in layer.parameters():
                nn.init.uniform_(part, -bound, bound, generator=generator)
        given, bins = latent + sizes.actions, options.bins
        self.dynamics = PlanLayers((given, *hidden, latent), generator, normed=True)
        self.rewards = PlanLayers((given, *hidden, bins), generator, still=True)
        self.prior = PlanLayers((latent, *hidden, 2 * sizes.actions), generator)
        self.values = PlanLayers(
            (given, *hidden, bins), generator, count=options.critics, still=True
        )

    def encode(self, pictures: Tensor) -> Tensor:
        """Returns the latents (N, L) of pictures on 0..255."""
        x = pictures / 255.0 - 0.5
        for i, layer in enumerate(self.encoder):
            x = layer(functional.relu(x) if i else x)
        return self.simplices(x.flatten(1))

    def simplices(self, x: Tensor) -> Tensor:
        """Returns numbers whose groups are positive and add up to one."""
        return x.unflatten(-1, (-1, self.options.group)).softmax(-1).flatten(-2)

    def next(self, x: Tensor) -> Tensor:
        """Returns the next latents (..., L) after latents and actions (..., L + A)."""
        return self.simplices(_asked(self.dynamics, x)[0])

    def choose(self, z: Tensor, noise: Tensor) -> SquashedChoice:
        """Returns the prior's actions that standard normal noise (..., A) picks."""
        mean, raw = _asked(self.prior, z)[0].chunk(2, dim=-1)
        return squashed(mean, raw, noise)

    def reward(self, x: Tensor) -> Tensor:
        """Returns the logits (..., bins) of rewards after latents and actions."""
        return _asked(self.rewards, x)[0]

    def value(
        self,
        x: Tensor,
        members: Tensor | None = None,
        kept: Tensor | None = None,
        values: PlanLayers | None = None,
    ) -> Tensor:
        """Returns the logits (networks, ..., bins) of values, of other networks if given."""
        return _asked(self.values if values is None else values, x, members, kept)

    def encoded(self, numbers: Tensor) -> Tensor:
        """Returns numbers (..., 1) as weights of the two nearest bins, (..., bins)."""
        limit, bins = self.options.limit, self.options.bins
        x = (torch.sign(numbers) * torch.log1p(numbers.abs())).clamp(-limit, limit)
        place = (x + limit) * ((bins - 1) / (2.0 * limit))
        return (1.0 - (place - torch.arange(bins, device=x.device)).abs()).clamp(min=0.0)

    def decoded(self, logits: Tensor) -> Tensor:
        """Returns the numbers (..., 1) that logits (..., bins) stand for."""
        limit, bins = self.options.limit, self.options.bins
        places = torch.linspace(-limit, limit, bins, device=logits.device)
        x = (logits.softmax(-1) * places).sum(-1, keepdim=True)
        return torch.sign(x) * (torch.exp(x.abs()) - 1.0)  # ONNX has no expm1

    def noise(self, worlds: int, generator: torch.Generator) -> PlanNoise:
        """Returns the dice of one search."""
        plan, device = self.options, generator.device
        path = (plan.horizon, self.sizes.actions)
        more = plan.samples - plan.policy_paths
        shapes = (
            (worlds, plan.policy_paths, *path),
            (plan.iterations, worlds, more, *path),
            (plan.iterations, worlds, plan.samples, self.sizes.actions),
        )
        prior, paths, last = (
            torch.randn(shape, generator=generator, device=device) for shape in shapes
        )
        lots = torch.rand((plan.iterations, plan.critics), generator=generator, device=device)
        return PlanNoise(prior, paths, last, lots.topk(2).indices)

    def search(self, z: Tensor, mean: Tensor, noise: PlanNoise) -> Planned:
        """Returns what MPPI ends with, from latents (N, L) and plans (N, horizon, A)."""
        plan = self.options
        own = self._prior_paths(z, noise.prior)
        spread = torch.full_like(mean[:1], plan.most_spread)
        for paths, last, pair in zip(noise.paths, noise.last, noise.pairs, strict=True):
            drawn = (mean[:, None] + spread[:, None] * paths).clamp(-1.0, 1.0)
            actions = torch.cat([own, drawn], dim=1)
            best = self.worth(z, actions, last, pair).topk(plan.elites, dim=1)
            rows = best.indices[..., None, None].expand(-1, -1, *actions.shape[2:])
            elites = actions.gather(1, rows)
            weights = (plan.temperature * best.values).softmax(1)
            share = weights[..., None, None]
            mean = (share * elites).sum(1)
            spread = (share * (elites - mean[:, None]) ** 2).sum(1).sqrt()
            spread = spread.clamp(plan.least_spread, plan.most_spread)
        return Planned(mean, spread, elites, weights)

    def _prior_paths(self, z: Tensor, noise: Tensor) -> Tensor:
        """Returns plans (N, policy_paths, horizon, A) that the prior makes step by step."""
        x, steps = z[:, None].expand(-1, noise.shape[1], -1), []
        for t in range(noise.shape[2]):
            steps.append(self.choose(x, noise[:, :, t]).actions)
            x = self.next(torch.cat([x, steps[-1]], dim=-1))
        return torch.stack(steps, dim=2)

    def worth(self, z: Tensor, actions: Tensor, last: Tensor, pair: Tensor) -> Tensor:
        """Returns the discounted rewards of plans and the value after them, (N, samples).

        The actions are (N, samples, horizon, A); `last` is noise of the prior's action after a
        plan, and the mean of the two value networks of `pair` counts.
        """
        x, total = z[:, None].expand(-1, actions.shape[1], -1), torch.zeros((), device=z.device)
        for t in range(actions.shape[2]):
            both = torch.cat([x, actions[:, :, t]], dim=-1)
            total = total + self.discount**t * self.decoded(self.reward(both))
            x = self.next(both)
        both = torch.cat([x, self.choose(x, last).actions], dim=-1)
        value = self.decoded(self.value(both, pair)).mean(0)
        return (total + self.discount ** actions.shape[2] * value).squeeze(-1)

    def forward(self, pictures: Tensor, *noise: Tensor) -> Tensor:
        """Returns the first action of the mean plan, searched from nothing."""
        z = self.encode(pictures).float()
        zeros = z.new_zeros(self.options.horizon, self.sizes.actions)
        start = z[:, :1, None] * zeros  # exported programs leave the number of worlds open
        return self.search(z, start, PlanNoise(*noise)).mean[:, 0]


def _asked(
    layers: PlanLayers, x: Tensor, members: Tensor | None = None, kept: Tensor | None = None
) -> Tensor:
    """Returns (networks, ..., out) for (..., in); exported programs leave the first axis open."""
    made = layers(x.flatten(0, -2), members, kept)
    return made.reshape(made.shape[0], -1, *x.shape[1:-1], made.shape[-1])


def _of(weight: Tensor, members: Tensor | None) -> Tensor:
    return weight if members is None else weight.index_select(0, members)


PLANNED_FORMAT = "interverse-planned-policy-1"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedCard(PolicyCard):
    """Shape (C, S, S) of a world's pictures, the fields of sizes and options, a step's discount."""

    observation: list[int]
    sizes: dict[str, int]
    options: dict[str, float]
    discount: float
    format: str = PLANNED_FORMAT


@final
class PlannedPolicy(PicturePolicy):
    """The searched action of two files, as a callable on batched pictures."""

    card: PlannedCard
    card_type, file_format = PlannedCard, PLANNED_FORMAT
    at_once = 1  # sums of a batch have other last digits, and a search may then choose otherwise

    def __init__(self, card: PlannedCard, weights: dict[str, Any]) -> None:
        super().__init__(card, weights)
        check_number(card.discount, "discount", most=1.0)
        options: Any = card.options
        dice = torch.Generator().manual_seed(0)
        sizes = PlanSizes(**card.sizes)
        self._model = PlanModel(sizes, PlanOptions(**options), card.discount, dice)
        self._model.requires_grad_(False)
        self._noise = self._model.noise(1, torch.Generator().manual_seed(0))

    def forward(self, pictures: Any) -> Any:
        """Returns actions for a tensor of pictures."""
        noise = [part.to(pictures.device) for part in self._noise]
        self._model.load_state_dict(self.weights, assign=True)
        return self.bounded(self._model(middle(pictures, self.card.sizes["side"]), *noise))

    def check(self) -> None:
        """Raises ValueError unless card and weights are one network."""
        sizes = self._model.sizes
        if len(self.card.low) != sizes.actions:
            raise ValueError(f"bounds of {len(self.card.low)} numbers for {sizes.actions} actions")
        shape = self.card.observation
        if len(shape) != 3 or shape[0] != sizes.channels or min(shape[1:]) < sizes.side:
            raise ValueError(f"observation {shape!r}")
        try:
            self._model.load_state_dict(self.weights, assign=True)
        except RuntimeError as error:
            raise ValueError(str(error).splitlines()[-1].strip()) from error


def planned_policy(
    model: PlanModel,
    observation: list[int],
    bounds: tuple[list[float], list[float]],
    trained: dict[str, Any],
) -> PlannedPolicy:
    """Returns a model as a policy with weights of its own."""
    names = PlanOptions.__dataclass_fields__
    card = PlannedCard(
        observation=observation,
        sizes=asdict(model.sizes),
        options={name: getattr(model.options, name) for name in names},
        discount=model.discount,
        low=bounds[0],
        high=bounds[1],
        trained=trained,
    )
    held = model.state_dict()
    return PlannedPolicy(card, {name: v.detach().cpu().clone() for name, v in held.items()})
