"""One recognition model at work: its networks, updates, accuracy on a set, kept features."""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections import OrderedDict
from collections.abc import Mapping
from typing import final

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional

from interverse.core.errors import InvalidValueError
from interverse.core.files.tensor_files import read_safetensors, write_safetensors
from interverse.core.rng import Noise
from interverse.models.pairs.config import PairFit, PairModelConfig
from interverse.models.pairs.encoders import PairEncoder, matched
from interverse.models.pairs.head import (
    HeadOutput,
    PairHead,
    change_penalty,
    critic,
    feature_blocks,
    verb_groups,
)
from interverse.models.pairs.tensors import PairTensors
from interverse.models.steps import adam_tensors, autocast, restore_adam, seeded, under

_MOST = 3  # sets of features in memory
_held: OrderedDict[str, Tensor] = OrderedDict()
BETAS = (0.5, 0.999)
_EVALUATED_AT_ONCE = 256
_ENCODED_AT_ONCE = {"cpu": 16, "cuda": 256}  # pairs: maps of many do not fit a processor's cache


@final
class PairWork:
    """A model on its data: trains on rows, measures on rows.

    Args:
        config: the model.
        data: all pairs, on the device.
        fit: the settings.
        seed: of weights, order and slots' first values.
    """

    def __init__(self, config: PairModelConfig, data: PairTensors, fit: PairFit, seed: int) -> None:
        self.config, self.data, self.fit, self.seed = config, data, fit, seed
        self.device = torch.device(fit.device)
        with seeded("pairs/weights", seed):
            self.encoder = PairEncoder(config)
            self.head = PairHead(config, inputs=self.encoder.width, actions=len(data.verbs))
            self.critic = critic(config.width, len(data.nouns)).to(self.device)
        self.state_critic: nn.Module | None = None
        if config.state_independence > 0:
            with seeded("pairs/state_critic", seed):
                self.state_critic = critic(config.width, len(data.nouns)).to(self.device)
        self.begun_with = self.encoder.content()  # a path may hold other weights another day
        self.encoder.to(self.device)
        self.head.to(self.device)
        self.groups = verb_groups(data.verbs).to(self.device)
        groups = int(self.groups.max()) + 1
        if config.sparsity == 0:  # only pictures of change use them: any number of actions will do
            groups = min(groups, config.width)
        self.blocks = feature_blocks(config.width, groups).to(self.device)
        self.kept: Tensor | None = None
        self.optimizer = self._adam(self.head, *([] if config.frozen else [self.encoder]))
        self.critic_optimizer = self._adam(self.critic)
        second = self.state_critic
        self.state_critic_optimizer = None if second is None else self._adam(second)

    @property
    def keeps(self) -> bool:
        """Whether features are computed once: nothing that makes them changes."""
        return self.config.frozen and self.config.frozen_norm == "fixed"

    def _adam(self, *parts: nn.Module) -> torch.optim.Adam:
        parameters = [value for part in parts for value in part.parameters()]
        return torch.optim.Adam(parameters, lr=self.fit.learning_rate, betas=BETAS, fused=True)

    def keep_features(self) -> None:
        """Takes the features of every pair from memory, else from a folder; computes new ones.

        Their name is equal for equal pictures and encoders: the weights' content counts, wherever
        they came from, and the seed where weights or slots are drawn from it.
        """
        if not self.keeps or self.kept is not None:
            return
        names = ("encoder", "pairing", "match", "min_mask")
        made = {name: value for name, value in self.config.record().items() if name in names}
        source = f"{self.encoder.source} {self.begun_with} {self.fit.precision}"
        drawn = self.encoder.source == "random" or self.config.encoder.name == "slots"
        told = json.dumps([made, source, self.seed if drawn else None], sort_keys=True)
        digest = hashlib.blake2b(told.encode(), digest_size=12)
        masks = self.data.masks if self.config.pairing == "mask" else None
        for part in (self.data.images, masks):
            if part is not None:
                digest.update(np.ascontiguousarray(part.cpu().numpy()).data)
        key = digest.hexdigest()
        if key not in _held:
            folder = self.fit.features
            file = None if folder is None else folder / f"{key}.safetensors"
            if file is not None and file.exists():
                _held[key] = read_safetensors(file)["features"]
            else:
                _held[key] = self._all_features().cpu()
                if file is not None:
                    write_safetensors(file, {"features": _held[key]})
        _held.move_to_end(key)
        while len(_held) > _MOST:
            _held.popitem(last=False)
        self.kept = _held[key].to(self.device)

    def _all_features(self) -> Tensor:
        self.encoder.eval()
        rows = torch.arange(len(self.data), device=self.device)
        parts = rows.split(_ENCODED_AT_ONCE.get(self.device.type, _EVALUATED_AT_ONCE))
        with torch.no_grad():
            return torch.cat([self._encoded(some) for some in parts])

    def epoch(self, rows: Tensor, number: int = 0) -> dict[str, float]:
        """Trains on rows in their order; returns means over them, accuracy as it was met.

        Args:
            rows: of the pairs.
            number: of the epoch, from 0; where pictures are cut follows from it.
        """
        began = time.perf_counter()
        self.head.train()
        self.encoder.train(not self.config.frozen or self.config.frozen_norm == "drift")
        totals = torch.zeros(4, device=self.device)
        for some in batches(rows, self.fit.batch_size):
            totals += self._update(some, number) * len(some)
        loss, right, told, changed = (totals / len(rows)).tolist()
        if not math.isfinite(loss):
            raise InvalidValueError(
                "the training loss is no longer a number",
                fix="Lower learning_rate or independence, or use precision='float32'",
            )
        out = {"loss": loss, "train": right, "seconds": time.perf_counter() - began}
        if self.config.independence > 0:
            out["critic_loss"] = told
        if self.config.sparsity > 0:
            out["change"] = changed
        return {name: round(value, 6) for name, value in out.items()}

    def _update(self, rows: Tensor, number: int) -> Tensor:
        """Returns loss, accuracy, the critic's loss and the change penalty of one update."""
        verb, noun = self.data.verb[rows], self.data.noun[rows]
        out = self.head(self.tokens(rows, number))
        loss = functional.cross_entropy(out.logits, verb)
        told = changed = torch.zeros((), device=self.device)
        if self.config.independence > 0:
            told = _train(self.critic, self.critic_optimizer, out.action.detach(), noun)
            loss = loss - self.config.independence * _evaded(self.critic, out.action, noun)
        if self.state_critic is not None and self.state_critic_optimizer is not None:
            states = out.features.mean(2).flatten(0, 1)  # of both pictures, one after the other
            nouns = noun.repeat_interleave(2)
            _train(self.state_critic, self.state_critic_optimizer, states.detach(), nouns)
            evaded = _evaded(self.state_critic, states, nouns)
            loss = loss - self.config.state_independence * evaded
        if self.config.sparsity > 0:
            group = self.groups[verb]
            changed = change_penalty(out.features, group, self.blocks, self.config.sparsity_form)
            loss = loss + self.config.sparsity * changed
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        right = (out.logits.argmax(1) == verb).float().mean()
        return torch.stack([loss.detach(), right, told, changed.detach()])

    def tokens(self, rows: Tensor, epoch: int | None = None) -> Tensor:
        """Returns the tokens of pairs, kept or computed now; in training, of cut pictures."""
        if self.kept is not None:
            return self.kept[rows]
        with torch.set_grad_enabled(torch.is_grad_enabled() and not self.config.frozen):
            return self._encoded(rows, epoch)

    def _encoded(self, rows: Tensor, epoch: int | None = None) -> Tensor:
        images, masks = self.data.images[rows], None
        if self.config.pairing == "mask" and self.data.masks is not None:
            masks = self.data.masks[rows]
        if self.config.translation and epoch is not None:
            images, masks = cut(images, masks, rows, self.config.translation, self.seed, epoch)
        with autocast(self.device.type, self.fit.precision):
            noise = self.encoder.noise(rows, self.seed)
            tokens = self.encoder(images, masks, noise)
        return matched(tokens) if self.config.match == "similarity" else tokens

    @torch.no_grad()
    def outputs(self, rows: Tensor) -> HeadOutput:
        """Returns what the model says of pairs, in evaluation mode."""
        self.encoder.eval()
        self.head.eval()
        parts = [self.head(self.tokens(some)) for some in rows.split(_EVALUATED_AT_ONCE)]
        return HeadOutput(*(torch.cat(part) for part in zip(*parts, strict=True)))

    def accuracy(self, rows: Tensor) -> float:
        """Returns the share of pairs whose action is recognised; every pair counts the same."""
        return int((self.outputs(rows).logits.argmax(1) == self.data.verb[rows]).sum()) / len(rows)

    def _networks(self) -> nn.ModuleDict:
        """Returns the networks whose weights training may change."""
        parts: dict[str, nn.Module] = {"head": self.head, "critic": self.critic}
        parts |= {} if self.state_critic is None else {"state_critic": self.state_critic}
        return nn.ModuleDict(parts if self.keeps else {**parts, "encoder": self.encoder})

    def weights(self) -> dict[str, Tensor]:
        """Returns the weights that training may change, by name."""
        return self._networks().state_dict()

    def state(self) -> dict[str, Tensor]:
        """Returns weights and the optimisers' state under prefixed names."""
        out = {f"weights/{name}": value for name, value in self.weights().items()}
        for kind, optimizer in self._optimizers().items():
            out |= adam_tensors(optimizer, kind)
        return out

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Goes back to a saved state."""
        self._networks().load_state_dict(under(tensors, "weights"))
        for kind, optimizer in self._optimizers().items():
            restore_adam(optimizer, tensors, kind)

    def _optimizers(self) -> dict[str, torch.optim.Adam]:
        known = {
            "adam": self.optimizer,
            "critic_adam": self.critic_optimizer,
            "state_critic_adam": self.state_critic_optimizer,
        }
        return {kind: optimizer for kind, optimizer in known.items() if optimizer is not None}


def _train(
    critic: nn.Module, optimizer: torch.optim.Adam, embedding: Tensor, noun: Tensor
) -> Tensor:
    """Improves a critic on embeddings as they are; returns its loss."""
    loss = functional.cross_entropy(critic(embedding), noun)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    return loss.detach()


def _evaded(critic: nn.Module, embedding: Tensor, noun: Tensor) -> Tensor:
    """Returns a critic's loss with slopes for the embedding alone."""
    fixed = {name: value.detach() for name, value in critic.named_parameters()}
    return functional.cross_entropy(functional_call(critic, fixed, embedding), noun)


def cut(
    images: Tensor, masks: Tensor | None, rows: Tensor, most: float, seed: int, epoch: int
) -> tuple[Tensor, Tensor | None]:
    """Returns pictures (B, 2, 3, S, S), each cut at a place of its own, and their masks likewise.

    A cut keeps from 1 - most to all of the area, with edges at most 4 to 3 of each other.
    """
    noise = Noise(torch.full_like(rows, seed), rows, torch.full_like(rows, epoch))
    drawn = noise.uniform("pairs/cut", (2, 4)).float()
    area = 1 - most * drawn[..., 0]
    stretch = torch.exp(math.log(4 / 3) * (drawn[..., 1] - 0.5))  # square root of the ratio
    # (B, 2, 2): width and height as shares of the picture's edge, then the middle of the cut
    share = (area[..., None].sqrt() * torch.stack([stretch, 1 / stretch], -1)).clamp(max=1)
    middle = (2 * drawn[..., 2:] - 1) * (1 - share)
    turn = torch.cat([torch.diag_embed(share), middle[..., None]], -1).flatten(0, 1)
    size = (len(turn), 1, *images.shape[-2:])
    grid = functional.affine_grid(turn, list(size), align_corners=False)
    flat = images.flatten(0, 1).float()
    out = functional.grid_sample(flat, grid, align_corners=False, padding_mode="border")
    if masks is not None:
        shown = functional.grid_sample(
            masks.flatten(0, 1)[:, None].float(), grid, mode="nearest", align_corners=False
        )
        masks = (shown[:, 0] > 0).unflatten(0, (-1, 2))
    return out.round().to(torch.uint8).unflatten(0, (-1, 2)), masks


def batches(rows: Tensor, size: int) -> list[Tensor]:
    """Returns rows in batches; a single row left over joins the batch before (batch norm).

    >>> [len(some) for some in batches(torch.arange(9), 4)]
    [4, 5]
    """
    parts = list(rows.split(size))
    if len(parts) > 1 and len(parts[-1]) == 1:
        parts[-2:] = [torch.cat(parts[-2:])]
    return parts
