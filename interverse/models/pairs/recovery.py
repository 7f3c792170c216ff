"""Methods that learn the factors behind pairs of pictures, and how well they recover them.

| method | what it may use | from |
|---|---|---|
| `ada_gvae` | that few factors differ between before and after | Locatello et al. 2020 |
| `citris` | which group of actions was done, and that it concerns few factors | Lippe et al. 2022 |
| `pcl` | that before and after belong together | Hyvärinen and Morioka 2017 |

All share one encoder; the first two also draw the pictures again. CITRIS is its VAE with learned
assignment of latents to groups and a transition for each group, without its target classifier.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, final, get_args

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from interverse.core.errors import InvalidValueError
from interverse.core.rng import generator
from interverse.core.type_checks import validated
from interverse.models.pairs.config import Count
from interverse.models.pairs.head import verb_groups
from interverse.models.pairs.readout import feature_scores, picture_groups
from interverse.models.pairs.tensors import PairTensors
from interverse.models.steps import seeded

Method = Literal["ada_gvae", "citris", "pcl"]
METHODS: tuple[Method, ...] = get_args(Method)
SIZE = 64  # edge of the pictures that all methods see
_WIDTHS = (32, 64, 128, 256)
_LOGVAR = 8.0  # log variances stay within plus and minus this


@final
@dataclass(frozen=True, slots=True, kw_only=True)
@validated
class Recovery:
    """How a method trains."""

    method: Method = "ada_gvae"
    latents: Count = 16
    steps: Count = 10_000
    batch_size: Count = 64
    learning_rate: float = 5e-4
    beta: float = 1.0
    """Weight of the divergence from the prior."""
    device: str = "cpu"


@final
class PairAutoencoder(nn.Module):
    """Pictures to means and log variances of latents, and back; what a method adds lies beside.

    Args:
        how: the settings.
        verbs: how many actions there are. groups: of each action, the number of its group.
    """

    def __init__(self, how: Recovery, verbs: int, groups: Tensor) -> None:
        super().__init__()
        self.how, self.latents, edge = how, how.latents, SIZE >> len(_WIDTHS)
        layers: list[nn.Module] = []
        for inputs, outputs in zip((3, *_WIDTHS), _WIDTHS, strict=False):
            layers += [nn.Conv2d(inputs, outputs, 4, 2, 1), nn.ReLU()]
        flat = _WIDTHS[-1] * edge**2
        self.encoder = nn.Sequential(*layers, nn.Flatten(), nn.Linear(flat, 2 * how.latents))
        layers = [nn.Linear(how.latents, flat), nn.Unflatten(1, (_WIDTHS[-1], edge, edge))]
        for inputs, outputs in zip(_WIDTHS[::-1], (*_WIDTHS[-2::-1], 3), strict=True):
            layers += [nn.ReLU(), nn.ConvTranspose2d(inputs, outputs, 4, 2, 1)]
        self.decoder = nn.Sequential(*layers, nn.Sigmoid())
        blocks = int(groups.max()) + 1
        self.register_buffer("groups", groups)
        self.assignment = nn.Parameter(torch.zeros(how.latents, blocks + 1))
        self.transition = nn.ModuleList(
            nn.Sequential(
                nn.Linear(how.latents + verbs, 64), nn.SiLU(), nn.Linear(64, 2 * how.latents)
            )
            for _ in range(blocks + 1)
        )
        self.verbs = verbs
        self.contrast = nn.Parameter(torch.randn(5, how.latents) * 0.1)
        self.offset = nn.Parameter(torch.zeros(()))

    def encode(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Returns means and log variances of (B, 3, 64, 64) uint8 pictures."""
        mean, logvar = self.encoder(images.float() / 255).chunk(2, dim=1)
        return mean, _LOGVAR * torch.tanh(logvar / _LOGVAR)

    def next_latents(self, z: Tensor, verb: Tensor) -> tuple[Tensor, Tensor]:
        """Returns means and log variances (blocks, B, latents) of the latents after an action.

        Block 0 knows no action; block g knows the action only if it is of group g - 1.
        """
        group = self.groups[verb]  # type: ignore[index]
        told = functional.one_hot(verb, self.verbs).to(z.dtype)
        out = []
        for block, network in enumerate(self.transition):
            known = told * (group == block - 1)[:, None]
            out.append(network(torch.cat([z, known], dim=1)))
        mean, logvar = torch.stack(out).chunk(2, dim=2)
        return z + mean, _LOGVAR * torch.tanh(logvar / _LOGVAR)

    @torch.no_grad()
    def imagine(self, before: Tensor, verb: Tensor) -> Tensor:
        """Returns the pictures (B, 3, 64, 64), 0 to 1, that an action would lead to (`citris`)."""
        z, _ = self.encode(before)
        mean, _ = self.next_latents(z, verb)
        chosen = self.assignment.argmax(dim=1)
        after: Tensor = self.decoder(mean[chosen, :, torch.arange(self.latents)].T)
        return after


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Recovered:
    """A trained method.

    Attributes:
        model: its networks. how: the settings. losses: mean loss of every hundredth of the steps.
        scores: recovery of the true factors on the test pairs, as `feature_scores` says.
    """

    model: PairAutoencoder
    how: Recovery
    losses: tuple[float, ...]
    scores: Mapping[str, Any]


def recover(
    pairs: PairTensors, split: Any, how: Recovery, *, seed: int = 0, scored: bool = True
) -> Recovered:
    """Returns a method trained on `split.train` and scored on `split.test_id`.

    `scored`: whether to score it now; the readers take longer than the training.
    """
    device = torch.device(how.device)
    images = small_images(pairs).to(device)
    verb = pairs.verb.to(device)
    groups = verb_groups(pairs.verbs).to(device)
    with seeded("recovery/weights", seed):
        model = PairAutoencoder(how, len(pairs.verbs), groups).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=how.learning_rate)
    rows, losses = torch.as_tensor(split.train, device=device), []
    total, every = torch.zeros((), device=device), max(1, how.steps // 100)
    noise = torch.Generator(device).manual_seed(seed)
    for step in range(how.steps):
        drawn = generator(seed=seed, name="recovery/order", episode=step)
        some = rows[torch.as_tensor(drawn.integers(len(rows), size=how.batch_size))]
        loss = LOSSES[how.method](model, images[some], verb[some], noise)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        total += loss.detach()
        if (step + 1) % every == 0:
            losses.append(round(float(total) / every, 6))
            total.zero_()
    scores: dict[str, Any] = {}
    if scored:
        at = np.asarray(split.test_id)
        with torch.no_grad():
            parts = images[torch.as_tensor(at)].split(512)
            means = torch.cat([model.encode(part.flatten(0, 1))[0] for part in parts])
        factors = {name: values[at].ravel() for name, values in pairs.factors.items()}
        blocks, houses = list(range(model.latents)), picture_groups(pairs, at)
        scores = feature_scores(means.cpu().numpy(), factors, blocks, seed, houses)
    return Recovered(model=model, how=how, losses=tuple(losses), scores=scores)


def small_images(pairs: PairTensors) -> Tensor:
    """Returns the pictures at the methods' size, (N, 2, 3, 64, 64) uint8."""
    if pairs.size == SIZE:
        return pairs.images
    out = []
    for part in pairs.images.flatten(0, 1).split(2048):
        small = functional.interpolate(part.float(), size=(SIZE, SIZE), mode="area")
        out.append(small.round().to(torch.uint8))
    return torch.cat(out).unflatten(0, (len(pairs), 2))


def ada_gvae_loss(
    model: PairAutoencoder, images: Tensor, verb: Tensor, noise: torch.Generator
) -> Tensor:
    """Returns the loss of Ada-GVAE: latents that differ little are averaged over the pair."""
    (mean, logvar), (other, logother) = (model.encode(images[:, k]) for k in (0, 1))
    first, second = share_latents((mean, logvar), (other, logother))
    drawn = sum(
        _drawing_error(model, part, images[:, k], noise) for k, part in enumerate((first, second))
    )
    prior = sum(_divergence(*part).sum(1).mean() for part in (first, second))
    return torch.as_tensor((drawn + model.how.beta * prior) / 2)


def share_latents(
    one: tuple[Tensor, Tensor], two: tuple[Tensor, Tensor]
) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """Returns two posteriors whose latents are averaged where they differ little.

    Differ little: the divergence between them lies below the middle of its range over latents.
    """
    gap = _divergence(*one, *two)
    low, high = gap.amin(1, keepdim=True), gap.amax(1, keepdim=True)
    shared = gap < (low + high) / 2
    mean = (one[0] + two[0]) / 2
    logvar = ((one[1].exp() + two[1].exp()) / 2).log()
    mixed = tuple(
        (torch.where(shared, mean, m), torch.where(shared, logvar, v)) for m, v in (one, two)
    )
    return mixed[0], mixed[1]


def citris_loss(
    model: PairAutoencoder, images: Tensor, verb: Tensor, noise: torch.Generator
) -> Tensor:
    """Returns the loss of CITRIS-VAE: a latent's prior is that of the group it is assigned to."""
    (mean, logvar), (after, logafter) = (model.encode(images[:, k]) for k in (0, 1))
    drawn = _drawing_error(model, (mean, logvar), images[:, 0], noise)
    drawn = drawn + _drawing_error(model, (after, logafter), images[:, 1], noise)
    z = _sample(mean, logvar, noise)
    prior_mean, prior_logvar = model.next_latents(z, verb)
    gap = _divergence(after[None], logafter[None], prior_mean, prior_logvar).mean(1)
    weights = functional.softmax(model.assignment, dim=1).T
    prior = _divergence(mean, logvar).sum(1).mean() + (weights * gap).sum()
    return (drawn + model.how.beta * prior) / 2


def pcl_loss(
    model: PairAutoencoder, images: Tensor, verb: Tensor, noise: torch.Generator
) -> Tensor:
    """Returns the loss of permutation-contrastive learning: true pairs against shuffled ones."""
    first, second = (model.encode(images[:, k])[0] for k in (0, 1))
    wrong = second[torch.randperm(len(second), generator=noise, device=second.device)]
    one, two, bias, square, shift = model.contrast

    def together(other: Tensor) -> Tensor:
        ties = (one * other + two * first + bias).abs() - (square * other + shift).square()
        return model.offset - ties.sum(1)

    true, false = together(second), together(wrong)
    return (functional.softplus(-true) + functional.softplus(false)).mean()


LOSSES: Mapping[str, Callable[[PairAutoencoder, Tensor, Tensor, torch.Generator], Tensor]] = {
    "ada_gvae": ada_gvae_loss,
    "citris": citris_loss,
    "pcl": pcl_loss,
}


def picture_score(imagined: Tensor, true: Tensor, fact: Tensor) -> float:
    """Returns how much of a counterfactual change the imagined pictures hold.

    1: they are the true counterfactual pictures. 0: no better than the pictures of the fact;
    below: worse. Errors are squared and summed over all pixels before they are compared.

    All are (B, 3, S, S) from 0 to 1.
    """
    wrong, change = ((part - true).square().sum() for part in (imagined, fact))
    if float(change) == 0:
        raise InvalidValueError(
            "the counterfactual pictures equal the fact's", fix="Choose another action"
        )
    return float(1 - wrong / change)


def _drawing_error(
    model: PairAutoencoder, latents: tuple[Tensor, Tensor], images: Tensor, noise: torch.Generator
) -> Tensor:
    drawn = model.decoder(_sample(*latents, noise))
    error = functional.binary_cross_entropy(drawn, images.float() / 255, reduction="none")
    return error.sum((1, 2, 3)).mean()


def _sample(mean: Tensor, logvar: Tensor, noise: torch.Generator) -> Tensor:
    normal = torch.randn(mean.shape, generator=noise, device=mean.device)
    return mean + normal * (logvar / 2).exp()


def _divergence(
    mean: Tensor, logvar: Tensor, other: Tensor | float = 0.0, logother: Tensor | float = 0.0
) -> Tensor:
    """Returns the divergence of each latent's normal distribution from another, or from N(0, 1)."""
    logs = torch.as_tensor(logother, dtype=mean.dtype, device=mean.device)
    spread = (logvar.exp() + (mean - other).square()) / logs.exp()
    return (spread - 1 + logs - logvar) / 2
