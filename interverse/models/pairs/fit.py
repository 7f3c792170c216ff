"""Training a recognition model on pairs: epochs, accuracies, progress that survives a kill."""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional

from interverse.core.errors import InvalidValueError
from interverse.core.files.atomic import write_json
from interverse.core.files.checkpoints import Checkpoint, Checkpoints
from interverse.core.files.tensor_files import read_safetensors, write_safetensors
from interverse.core.rng import Noise, check_seed, generator
from interverse.core.run import CHECKPOINTS, Run
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
from interverse.models.pairs.yardsticks import select
from interverse.models.steps import (
    adam_tensors,
    autocast,
    matmul_precision,
    restore_adam,
    seeded,
    under,
)

SETS = ("train", "valid", "test_id", "test_ood")
Listener = Callable[[Mapping[str, Any]], None]
"""Called after every epoch with its row of the history."""
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
        self.optimizers = {"adam": self.optimizer, "critic_adam": self._adam(self.critic)}
        if self.state_critic is not None:
            self.optimizers["state_critic_adam"] = self._adam(self.state_critic)

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

        Where pictures are cut follows from the epoch's number, from 0.
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
            told = _train(self.critic, self.optimizers["critic_adam"], out.action.detach(), noun)
            loss = loss - self.config.independence * _evaded(self.critic, out.action, noun)
        if self.state_critic is not None:
            states = out.features.mean(2).flatten(0, 1)  # of both pictures, one after the other
            nouns = noun.repeat_interleave(2)
            how = self.optimizers["state_critic_adam"]
            _train(self.state_critic, how, states.detach(), nouns)
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
        for kind, optimizer in self.optimizers.items():
            out |= adam_tensors(optimizer, kind)
        return out

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Goes back to a saved state."""
        self._networks().load_state_dict(under(tensors, "weights"))
        for kind, optimizer in self.optimizers.items():
            restore_adam(optimizer, tensors, kind)


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


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PairRun:
    """A trained model, how its accuracies went, and what each rule of selection reports.

    Attributes:
        work: the networks on their data, after the last epoch.
        sets: row numbers by set, on the device.
        history: one row per epoch: loss, and accuracy on train, valid, test_id and test_ood.
        selection: by rule, ID and OOD accuracy.
        weights: where the encoder's weights came from.
    """

    work: PairWork
    sets: Mapping[str, Tensor]
    history: tuple[Mapping[str, Any], ...]
    selection: Mapping[str, Mapping[str, float]]
    weights: str

    @classmethod
    def of(
        cls, work: PairWork, sets: Mapping[str, Tensor], history: Sequence[Mapping[str, Any]]
    ) -> PairRun:
        """Returns a run that has ended, with what each rule selects of its history."""
        told = {"selection": select(history), "weights": work.encoder.source}
        return cls(work=work, sets=sets, history=tuple(history), **told)  # type: ignore[arg-type]

    def record(self) -> dict[str, Any]:
        """Returns all but the networks as JSON values."""
        return {
            "model": self.work.config.record(),
            "fit": self.work.fit.decides(),
            "seed": self.work.seed,
            "weights": self.weights,
            "sizes": {name: len(rows) for name, rows in self.sets.items()},
            "selection": {rule: dict(row) for rule, row in self.selection.items()},
            "history": [dict(row) for row in self.history],
        }


def fit_pairs(
    config: PairModelConfig,
    data: PairTensors,
    split: Any,
    *,
    fit: PairFit,
    seed: int = 0,
    listeners: Sequence[Listener] = (),
) -> PairRun:
    """Returns a model trained on `split.train`, with its accuracy after every epoch.

    Accuracy on the training set is that met while training. A run whose `fit.out` holds progress
    goes on from it, and equals an unbroken run to the last bit on a CPU.

    Args:
        config: the model; `recipe` has the published ones.
        data: all pairs.
        split: which rows are for what.
        fit: how to train.
        seed: of weights and order.
        listeners: called after every epoch.
    """
    check_seed(seed)
    device = torch.device(fit.device)
    if device.type == "cuda" and not torch.cuda.is_available():
        raise InvalidValueError("device is 'cuda', but torch finds no GPU", fix="Pass device='cpu'")
    if config.pairing == "mask" and data.masks is None:
        raise InvalidValueError(
            "pairing 'mask' needs masks, and these pairs have none", fix="Use 'avg'"
        )
    sets = rows_of(split, len(data), device)
    work = PairWork(config, data.to(device), fit, seed)
    asked = {"model": config.record(), "fit": fit.decides(), "seed": seed}
    asked["data"] = fingerprint(data, sets)
    if work.encoder.source != "random":  # the seed tells those
        asked["encoder"] = work.begun_with
    history: list[dict[str, Any]] = []

    def reached() -> Checkpoint:
        return Checkpoint(step=len(history), record={"history": history}, tensors=work.state())

    run = Run(fit.out, asked, title="epochs", total=fit.epochs, every=fit.checkpoint_every)
    # Every seed's sets have sizes of their own: kernels tried for each cost a minute a seed.
    with run, matmul_precision(fit.precision, tune=False):
        if (held := run.resume()) is not None:
            work.restore(held.tensors)
            history += held.record["history"]
        work.keep_features()
        for epoch in range(len(history), fit.epochs):
            row = {"epoch": epoch + 1, **work.epoch(epoch_rows(sets, seed, epoch), epoch)}
            row |= {name: round(work.accuracy(sets[name]), 6) for name in SETS[1:]}
            history.append(row)
            run.keep(epoch + 1, reached)
            for listener in listeners:
                listener(row)
    found = PairRun.of(work, sets, history)
    if fit.out is not None:
        write_json(fit.out / "run.json", found.record())
        if fit.keep_weights:
            write_safetensors(fit.out / "weights.safetensors", work.weights())
        else:
            Checkpoints(fit.out / CHECKPOINTS).clear()
    return found


def epoch_rows(sets: Mapping[str, Tensor], seed: int, epoch: int) -> Tensor:
    """Returns the training rows in an epoch's order."""
    order = generator(seed=seed, name="pairs/order", episode=epoch)
    return sets["train"][torch.as_tensor(order.permutation(len(sets["train"])))]


def fingerprint(data: PairTensors, sets: Mapping[str, Tensor]) -> str:
    """Returns a short text that changes with labels, split or (some of the) pictures."""
    digest = hashlib.blake2b(digest_size=8)
    step = max(1, len(data) // 64)
    for part in (data.verb, data.noun, data.images[::step], *(sets[name] for name in SETS)):
        digest.update(np.ascontiguousarray(part.cpu().numpy()).tobytes())
    return f"{len(data)} pairs of {data.size} px, {data.crop}, {digest.hexdigest()}"


def rows_of(split: Any, count: int, device: torch.device) -> dict[str, Tensor]:
    """Returns the row numbers of each set on a device; a set that is too small raises."""
    found = {}
    for name in SETS:
        rows = np.asarray(getattr(split, name))
        least = 2 if name == "train" else 1
        if len(rows) < least:
            raise InvalidValueError(
                f"the split's {name} set has {len(rows)} pairs",
                allowed=f"at least {least}",
                fix="Collect more pairs, or choose another shift or seed",
            )
        if rows.min() < 0 or rows.max() >= count:
            raise InvalidValueError(f"the split's {name} set names pair {rows.max()} of {count}")
        found[name] = torch.as_tensor(rows.astype(np.int64), device=device)
    return found
