"""Agents whose encoder learns from more than the critics: CURL, SODA, SGQN, SAC+AE and DBC.

CURL tells which crops are of one picture. SODA (Hansen and Wang) has a projection of a strongly
changed picture predict the slow projection of the same picture as it was; nothing strongly changed
reaches actor or critics. SGQN (Bertoin et al.) keeps the pixels that the critics' gradient names
and covers the others with one colour: both pictures should have one value, and a head of the
encoder learns to tell the salient pixels of strongly changed pictures. SAC+AE gives its pictures
back. DBC has features as far apart as their states behave differently (deep bisimulation).
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Annotated, NamedTuple, final

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils import skip_init

from interverse.agents.pixel.agent import (
    Agent,
    AgentOptions,
    Pair,
    PixelBatch,
    StrongOptions,
    critic_loss,
    descend,
    track,
)
from interverse.agents.pixel.augment import fused
from interverse.agents.pixel.half import in_half
from interverse.agents.pixel.networks import (
    Critics,
    PixelEncoder,
    PixelSizes,
    linear,
    orthogonal,
    ready,
)
from interverse.core.type_checks import Positive, number, validated, whole

_Few = Annotated[int, whole(10**6)]
_BINS = 2**5  # grey levels of the picture that SAC+AE is to give back
_WIDTHS = (32, 128, 64)  # of SGQN's maps, at a quarter, a half and the whole of the picture
_SPREADS = (1e-4, 10.0)  # of DBC's latent model, least and greatest
_WIDTH = 512  # of its and the reward's hidden layer


@final
class Curl(Agent):
    """A contrastive loss after every step of the critics; the target encoder makes the keys."""

    view = "crop"
    own_trunk = True
    squash = False

    def _build(self, generator: torch.Generator) -> None:
        self.extra["contrast"] = Bilinear(self.sizes.features, self.generator).to(self.device)
        self.optimisers["contrast"] = self.adam(
            self.networks.encoder, self.extra["contrast"], rate=self.hyper.encoder_rate
        )

    def update(self, batch: PixelBatch) -> dict[str, Tensor]:
        """Learns from a batch; o, o' and the key are cropped apart."""
        nets, anchors = self.networks, self.see(batch.observations)
        target = self.target(batch, self.see(batch.successors))
        losses = self.learn(target, batch.actions, anchors)
        with torch.no_grad():
            keys = nets.target_encoder(self.see(batch.observations))
        logits = self.extra["contrast"](nets.encoder(anchors), keys)
        labels = torch.arange(len(logits), device=logits.device)  # one's own key among all
        apart = functional.cross_entropy(logits - logits.amax(1, keepdim=True).detach(), labels)
        descend(self.optimisers["contrast"], apart)
        return losses | {"contrast": apart.detach()}


@final
class Bilinear(nn.Module):
    """The matrix W between anchors and keys, uniform in (0, 1) at first."""

    def __init__(self, width: int, generator: torch.Generator) -> None:
        super().__init__()
        draws = torch.rand(width, width, generator=generator, device=generator.device)
        self.weight = nn.Parameter(draws)

    def forward(self, anchors: Tensor, keys: Tensor) -> Tensor:
        """Returns z_a W z_k^T, (N, N)."""
        return anchors @ (self.weight @ keys.T)


@final
@dataclass(frozen=True, kw_only=True)
@validated
class SodaOptions(StrongOptions):
    """The strong augmentation and the projections."""

    own_batch: _Few = 256
    """Pictures of a step on the projections; they are drawn apart from the critics' batch."""
    projection_rate: Positive = 1e-3
    """The learning rate of that step."""
    projection: _Few = 100
    """The width of the projections and of what is inside them."""
    projection_tau: Annotated[float, number(most=1.0, above=True)] = 0.005
    """How far the slow encoder and projection move at a step."""


@final
class Soda(Agent):
    """At every second update the convolutions learn from a pair of crops of one picture."""

    options: SodaOptions
    options_type = SodaOptions
    view = "crop"
    own_trunk = True

    def _build(self, generator: torch.Generator) -> None:
        width = self.options.projection
        parts = {
            "projection": Projection(self.sizes.flat, width, generator),
            "predictor": Projection(width, width, generator),
        }
        parts["slow_projection"] = copy.deepcopy(parts["projection"]).requires_grad_(False)
        self.extra.update({name: part.to(self.device) for name, part in parts.items()})
        slow = copy.deepcopy(self.networks.encoder.convolutions).requires_grad_(False)
        self.extra["slow_convolutions"] = slow
        learned = (self.networks.encoder.convolutions, parts["projection"], parts["predictor"])
        self.optimisers["projection"] = self.adam(*learned, rate=self.options.projection_rate)

    @property
    def drawn(self) -> int:
        """The critics' transitions, and after them the pictures of the step on projections."""
        return self.hyper.batch + self.options.own_batch

    def update(self, batch: PixelBatch) -> dict[str, Tensor]:
        """Learns from both parts of a batch; every crop is drawn apart."""
        count, turn = self.hyper.batch, self.updates % self.hyper.actor_every
        losses = super().update(PixelBatch(*(part[:count] for part in batch)))
        if turn:
            return losses
        # One step towards projections that a strong change does not move.
        plain, changed = (self.see(batch.observations[count:]) for _ in range(2))
        (changed,) = self._strong(changed, generator=self.generator)
        encoder, extra, tau = self.networks.encoder, self.extra, self.options.projection_tau
        with torch.no_grad():
            maps = encoder.maps(plain, extra["slow_convolutions"])[-1]
            slow = extra["slow_projection"](maps)
        guess = extra["predictor"](extra["projection"](encoder.convolve(changed)))
        guess, slow = functional.normalize(guess, dim=1), functional.normalize(slow, dim=1)
        loss = functional.mse_loss(guess, slow)
        descend(self.optimisers["projection"], loss)
        track(extra["slow_projection"], extra["projection"], tau)
        track(extra["slow_convolutions"], encoder.convolutions, tau)
        return losses | {"consistency": loss.detach()}


@final
class Projection(nn.Module):
    """Linear, norm over the batch, ReLU, linear."""

    def __init__(self, given: int, width: int, generator: torch.Generator) -> None:
        super().__init__()
        self.first = linear(given, width, generator)
        self.scale = nn.Parameter(torch.ones(width))
        self.shift = nn.Parameter(torch.zeros(width))
        self.second = linear(width, width, generator)

    def forward(self, x: Tensor) -> Tensor:
        """Returns the projection; the norm is that of the batch, as in training."""
        x = self.first(x.flatten(1))
        x = functional.batch_norm(x, None, None, self.scale, self.shift, training=True)
        return self.second(functional.relu(x))


@final
@dataclass(frozen=True, kw_only=True)
@validated
class SgqnOptions(StrongOptions):
    """What counts as salient, and how it is used; the defaults are the authors' code's."""

    quantile: Annotated[float, number(most=1.0, above=True, below=True)] = 0.9
    """The share of pixels that is covered; the authors have 0.9 to 0.98 by task."""
    consistency: Positive = 0.5
    """The weight of the gap between the values of whole and covered pictures."""
    mask_rate: Positive = 3e-4
    """The learning rate of the head, and of the encoder under it."""


@final
class Sgqn(Agent):
    """SAC on shifted pictures, with two losses about their salient pixels."""

    options: SgqnOptions
    options_type = SgqnOptions
    view = "shift"
    own_trunk = True

    def _build(self, generator: torch.Generator) -> None:
        head = SalienceHead(self.sizes, generator).to(self.device)
        self.extra["salience"] = head
        self.optimisers["salience"] = self.adam(
            self.networks.encoder, head, rate=self.options.mask_rate
        )

    def update(self, batch: PixelBatch) -> dict[str, Tensor]:
        """Learns from a batch; the head at every second update, after the critics."""
        turn = self.updates % self.hyper.actor_every
        seen, successors = self.see(batch.observations), self.see(batch.successors)
        target = self.target(batch, successors)
        # Pixels that are not salient get one level, drawn from darkest to lightest.
        kept, x = self._salient(seen, batch.actions), seen.float()
        draw = torch.rand((), generator=self.generator, device=self.device)
        covered = torch.where(kept, x, torch.lerp(x.amin(), x.amax(), draw))
        losses = self.learn(target, batch.actions, seen, covered)
        if turn:
            return losses
        # One step of the head towards telling salient pixels under a strong change.
        wanted = self._salient(seen, batch.actions).float()
        (changed,) = self._strong(seen, generator=self.generator)
        told = self.extra["salience"](self.networks.encoder(changed), batch.actions)
        loss = functional.binary_cross_entropy_with_logits(told.float(), wanted)
        descend(self.optimisers["salience"], loss)
        return losses | {"salience": loss.detach()}

    def _judged(self, values: Pair, target: Tensor, count: int) -> tuple[Tensor, dict[str, Tensor]]:
        critic = critic_loss((values[0][:count], values[1][:count]), target)
        gaps = [0.5 * functional.mse_loss(value[:count], value[count:]) for value in values]
        gap = gaps[0] + gaps[1]
        return critic + self.options.consistency * gap, {"critic": critic, "consistency": gap}

    def _salient(self, pictures: Tensor, actions: Tensor) -> Tensor:
        """Returns which pixels the first critic's value hangs on, (N, C, S, S)."""
        x = ready(pictures).detach().requires_grad_()
        value = guided_value(self.networks.encoder, self.networks.critics, x, actions)
        (gradient,) = torch.autograd.grad(value.sum(), x)
        return salient(gradient[:, : pictures.shape[1]], self.options.quantile)


@final
class SalienceHead(nn.Module):
    """Features and actions to a logit per pixel and channel."""

    def __init__(self, sizes: PixelSizes, generator: torch.Generator) -> None:
        super().__init__()
        channels, self._side = sizes.pictures
        self._quarter = -(-self._side // 4)
        given = sizes.features + sizes.actions
        self.linear = linear(given, _WIDTHS[0] * self._quarter**2, generator)
        pairs = zip(_WIDTHS, (*_WIDTHS[1:], channels), strict=True)
        self.layers = nn.ModuleList(nn.Conv2d(a, b, 3, padding=1) for a, b in pairs)
        for layer in self.layers:  # Torch's own start, without its global randomness
            bound = next(layer.parameters())[0].numel() ** -0.5
            for part in layer.parameters():
                nn.init.uniform_(part, -bound, bound, generator=generator)

    def forward(self, features: Tensor, actions: Tensor) -> Tensor:
        """Returns the logits, (N, C, S, S)."""
        x = self.linear(torch.cat([features, actions], dim=1))
        x = functional.relu(x).view(-1, _WIDTHS[0], self._quarter, self._quarter)
        sides = (2 * self._quarter, self._side)
        for layer, side in zip(self.layers, sides, strict=False):
            x = functional.relu(functional.interpolate(layer(x), size=[side, side]))
        return self.layers[-1](x)


def guided_value(encoder: PixelEncoder, critics: Critics, x: Tensor, actions: Tensor) -> Tensor:
    """Returns the first critic's values of pictures that are `ready`.

    Their gradient is guided back-propagation: at every ReLU only what is positive goes on.
    """
    maps = encoder.activations(x)
    for one in maps:
        one.register_hook(functional.relu)
    h = torch.cat([encoder.trunk(maps[-1]).float(), actions], dim=1)
    for layer in critics.first:
        h = layer(h)
        if isinstance(layer, nn.ReLU):
            h.register_hook(functional.relu)
    return h


def salient(gradient: Tensor, quantile: float) -> Tensor:
    """Returns the pixels of each frame whose largest gradient over colours is in the quantile."""
    count, channels, side = gradient.shape[:3]
    level = gradient.float().view(count, channels // 3, 3, side, side).abs().amax(2)
    least = level.flatten(2).quantile(quantile, dim=2)
    return (level >= least[..., None, None]).repeat_interleave(3, dim=1)


@final
@dataclass(frozen=True, kw_only=True)
@validated
class SacAeOptions(AgentOptions):
    """How the autoencoder is held back."""

    latent_cost: float = 1e-6
    """The weight of half the squared length of the features."""
    decoder_decay: float = 1e-7
    """Weight decay of the decoder."""


@final
class SacAe(Agent):
    """A reconstruction loss after every step of the critics."""

    options: SacAeOptions
    options_type = SacAeOptions
    own_trunk = True

    def _build(self, generator: torch.Generator) -> None:
        decoder = PixelDecoder(self.sizes, generator).to(self.device)
        self.extra["decoder"] = decoder
        self.optimisers["encoder"] = self.adam(self.networks.encoder, rate=self.hyper.encoder_rate)
        self.optimisers["decoder"] = self.adam(
            decoder, rate=self.hyper.encoder_rate, weight_decay=self.options.decoder_decay
        )

    def update(self, batch: PixelBatch) -> dict[str, Tensor]:
        """Learns from a batch."""
        losses = super().update(batch)
        features = self.networks.encoder(batch.observations)
        given_back = self.extra["decoder"](features)
        shape = batch.observations.shape
        draws = torch.rand(shape, generator=self.generator, device=self.device)
        measure = fused(picture_error) if given_back.is_cuda else picture_error
        error = measure(given_back, batch.observations, draws)
        error = error + self.options.latent_cost * 0.5 * features.pow(2).sum(1).mean()
        descend(self.optimisers["encoder"], error, self.optimisers["decoder"])
        return losses | {"reconstruction": error.detach()}


@final
class PixelDecoder(nn.Module):
    """Features to a picture, the encoder's layers in reverse."""

    def __init__(self, sizes: PixelSizes, generator: torch.Generator) -> None:
        super().__init__()
        self._maps = (sizes.filters, sizes.side, sizes.side)
        self.linear = linear(sizes.features, sizes.flat, generator)
        kind, filters = nn.ConvTranspose2d, sizes.filters
        self.layers = nn.ModuleList(
            orthogonal(skip_init(kind, filters, filters, 3), generator)
            for _ in range(sizes.layers - 1)
        )
        uneven = (sizes.pictures[1] - 3) % 2  # the row and column that the stride had dropped
        last = skip_init(kind, filters, sizes.pictures[0], 3, stride=2, output_padding=uneven)
        self.last = orthogonal(last, generator)

    def forward(self, features: Tensor) -> Tensor:
        """Returns pictures about -0.5..0.5."""
        x = functional.relu(self.linear(features)).view(-1, *self._maps)
        if in_half(x):  # the layout of the encoder's maps
            x = x.contiguous(memory_format=torch.channels_last)
        for layer in self.layers:
            x = functional.relu(layer(x))
        return self.last(x)


def picture_error(given_back: Tensor, pictures: Tensor, noise: Tensor) -> Tensor:
    """Returns the mean squared difference to coarse pictures, -0.5..0.5.

    They have 32 grey levels, spread over their bin by uniform noise.
    """
    level = torch.floor(pictures / (256 / _BINS))
    return functional.mse_loss(given_back.float(), (level + noise) / _BINS - 0.5)


@final
@dataclass(frozen=True, kw_only=True)
@validated
class DbcOptions(AgentOptions):
    """How strongly the metric shapes the features, and how the latent model is held back."""

    bisimulation: Annotated[float, number()] = 0.5
    """The weight of the metric's loss beside that of the latent model."""
    model_decay: Annotated[float, number()] = 1e-7
    """Weight decay of the latent model and the reward."""


@final
class Dbc(Agent):
    """The critics' step, one on a latent model's loss and the metric's, then the actor's."""

    options: DbcOptions
    options_type = DbcOptions
    own_trunk = True
    squash = False

    def _build(self, generator: torch.Generator) -> None:
        model = self._model = LatentModel(self.sizes, generator).to(self.device)
        self.extra["model"] = model
        rate, decay = self.hyper.critic_rate, self.options.model_decay
        self.optimisers["encoder"] = self.adam(self.networks.encoder, rate=self.hyper.encoder_rate)
        self.optimisers["model"] = self.adam(model, rate=rate, weight_decay=decay)

    def update(self, batch: PixelBatch) -> dict[str, Tensor]:
        """Learns from a batch; the actor sees the encoder as the metric has left it."""
        nets = self.networks
        target = self.target(batch, batch.successors)
        values = nets.critics(nets.encoder(batch.observations), batch.actions)
        loss = critic_loss(values, target)
        descend(self.optimisers["critic"], loss)
        losses = {"critic": loss.detach()} | self._foresee(batch)
        with torch.no_grad():
            maps = nets.encoder.convolve(batch.observations)
            features = nets.encoder.trunk(maps)
        return losses | self.follow(features, maps)

    def _foresee(self, batch: PixelBatch) -> dict[str, Tensor]:
        """Moves encoder and latent model by what comes next and by the metric."""
        encoder, model = self.networks.encoder, self._model
        features = encoder(batch.observations)
        with torch.no_grad():
            successors = encoder(batch.successors)
        guess = model(features, batch.actions)
        dice = torch.randn(guess.mean.shape, generator=self.generator, device=self.device)
        reward = model.reward(guess.mean + guess.spread * dice)
        # The Gaussian's negative log likelihood, less a constant, and the reward's error.
        distance = (successors - guess.mean) / guess.spread
        unlikely = (0.5 * distance**2 + guess.spread.log()).mean()
        foresight = unlikely + functional.mse_loss(reward, batch.rewards)
        # Features of two states lie |z_i - z_j| = |r_i - r_j| + discount W2(P_i, P_j) apart.
        others = torch.randperm(len(features), generator=self.generator, device=self.device)
        mean, spread = (part.detach() for part in guess)
        apart = (features - features[others]).abs().sum(1)
        rewards = (batch.rewards - batch.rewards[others]).abs().squeeze(1)
        means = (mean - mean[others]).pow(2).sum(1)
        spreads = (spread - spread[others]).pow(2).sum(1)
        wanted = rewards + self.hyper.discount * torch.sqrt(means + spreads)
        metric = functional.mse_loss(apart, wanted)
        total = foresight + self.options.bisimulation * metric
        descend(self.optimisers["encoder"], total, self.optimisers["model"])
        return {"model": foresight.detach(), "bisimulation": metric.detach()}


class NextFeatures(NamedTuple):
    """A Gaussian over the next features."""

    mean: Tensor
    spread: Tensor


@final
class LatentModel(nn.Module):
    """Features and actions to the next features, and these to the reward."""

    def __init__(self, sizes: PixelSizes, generator: torch.Generator) -> None:
        super().__init__()
        given = sizes.features + sizes.actions
        self.layers = _normed(given, 2 * sizes.features, generator)
        self.rewards = _normed(sizes.features, 1, generator)

    def forward(self, features: Tensor, actions: Tensor) -> NextFeatures:
        """Returns what comes next."""
        out = self.layers(torch.cat([features, actions], dim=1)).float()
        mean, raw = out.chunk(2, dim=1)
        low, high = _SPREADS
        return NextFeatures(mean, low + (high - low) * torch.sigmoid(raw))

    def reward(self, features: Tensor) -> Tensor:
        """Returns the reward on the way to these features, (N, 1)."""
        out: Tensor = self.rewards(features)
        return out.float()


def _normed(given: int, made: int, generator: torch.Generator) -> nn.Sequential:
    """Returns one hidden layer with a layer norm."""
    hidden = linear(given, _WIDTH, generator), nn.LayerNorm(_WIDTH), nn.ReLU()
    return nn.Sequential(*hidden, linear(_WIDTH, made, generator))
