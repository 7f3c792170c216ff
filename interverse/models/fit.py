"""Training: its settings, its random numbers, and one loop over stages for every learner.

Stages follow each other on the same weights. After each epoch the validation loss decides whether
the weights are the best so far; a stage starts from the last weights of the one before, not from
its best. Random numbers are a function of seed, stage and epoch alone: an epoch that is run again
after a crash draws the same, and a seed trained beside others draws what it draws alone.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal, NamedTuple, final

import numpy as np
import torch
from torch import Tensor, nn

from interverse.core.errors import InvalidValueError
from interverse.core.files.checkpoints import Checkpoint
from interverse.core.files.json_text import plain
from interverse.core.rng import check_seed, generator
from interverse.core.run import Display, Run
from interverse.core.type_checks import blames_fields, named, validated, whole
from interverse.models.learner import Learner
from interverse.models.steps import (
    Precision,
    adam_tensors,
    autocast,
    matmul_precision,
    restore_adam,
    under,
)

_PHASE = 10  # batches in a row that train a learned graph's networks, then its edges, and so on
_EAGER_STEPS = 3  # real updates run before a graph is recorded: libraries choose kernels in them

State = dict[str, Tensor]
Count = Annotated[int, whole(10**9)]


@blames_fields
@final
@dataclass(frozen=True, slots=True, kw_only=True)
@validated
class Fit:
    """How to train."""

    epochs: Count = 100
    """Per stage."""
    pretrain_epochs: Count | None = None
    """nll: epochs of its first stage, by far the dearest, if not as many."""
    batch_size: Count = 512
    learning_rate: float = 5e-4
    seeds: tuple[Annotated[int, named("seed", check_seed)], ...] = (0,)
    """One model per seed. A seed decides weights, noise and the order of the samples."""
    order_seed: Annotated[int, named("seed", check_seed)] | None = None
    """None: each seed visits the samples in an order of its own. A number: all seeds share the
    order that it gives."""
    episodes_per_batch: Count = 5
    """Recurrent models train on whole episodes after pretraining."""
    validation_order: Literal["file", "shuffled"] = "file"
    """In file order, a validation batch holds few episodes and its negatives are hard: the
    contrastive loss is then several times the training loss. The reference does so."""
    finetune: bool = True
    """nll: whether the third stage follows, which trains encoder, decoder and transition on."""
    sample_latents: bool = False
    """vae, transition stage: train on sampled states as the reference does, not on means."""
    device: str = "cpu"
    precision: Precision = "float32"
    """tf32 and bf16 concern a GPU; bf16 the convolutions alone."""
    compile: bool = False
    """Fuses kernels with torch.compile: a minute per stage first, so for long runs."""
    cuda_graphs: bool = True
    """On a GPU, records an update once and replays it; turn it off to find a failing kernel."""
    at_once: Literal["auto", "always", "never"] = "auto"
    """Whether seeds train together as stacked weights; auto: on a GPU, but not with a decoder or a
    medium encoder in bf16, where one seed fills it."""
    out: Path | None = None
    """Folder for progress and results; without it nothing is written and nothing resumed."""
    checkpoint_every: Count = 1
    """Epochs between progress records."""
    progress: bool = False
    """Shows a bar on the terminal."""
    tensorboard: bool = False
    """Writes curves under `out`."""

    def __post_init__(self) -> None:
        if not self.learning_rate > 0:
            raise InvalidValueError(f"learning_rate must be > 0, got {self.learning_rate}")
        if not self.seeds or len(set(self.seeds)) != len(self.seeds):
            raise InvalidValueError(f"seeds must be distinct, at least one: {self.seeds}")
        if self.tensorboard and self.out is None:
            raise InvalidValueError("tensorboard=True needs a folder", fix="Pass out='runs/name'")

    def decides(self) -> dict[str, Any]:
        """Returns the fields that decide the result, for comparison with a saved run."""
        names = ["epochs", "batch_size", "learning_rate", "order_seed", "episodes_per_batch"]
        names += ["validation_order", "finetune", "sample_latents", "precision"]
        names += [] if self.pretrain_epochs is None else ["pretrain_epochs"]
        return {name: getattr(self, name) for name in names}


class Draw(NamedTuple):
    """The random numbers of one batch; fields a stage has no use for are empty."""

    order: Tensor  # (B,) a permutation: whose state is whose negative
    normal: Tensor  # (2, B, slots, width) noise of a VAE's samples
    uniform: Tensor  # (graphs, objects, objects) for sampled graphs
    structural: bool = False  # whether this batch moves the graph instead of the networks


Step = Callable[[Tensor, Draw], Tensor]
"""Sample numbers, (B,) or (members, B), and random numbers to losses (members,)."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """Which random numbers a stage of a model uses."""

    negatives: bool = False
    normal: tuple[int, ...] | None = None
    """Shape of a VAE's state."""
    graphs: tuple[int, int, int] | None = None
    """Samples and shape of a learned graph."""


@final
@dataclass(frozen=True, slots=True)
class Feed:
    """The samples of one stage.

    Attributes:
        count: how many there are.
        load: numbers (B,) to a batch.
        axes: per argument of that batch, 0 for an axis over members, None where they share it.
        check: called after every pass over the samples; raises where a pass was not sound.
    """

    count: int
    load: Callable[[Tensor], Any]
    axes: Any = None
    check: Callable[[], None] = lambda: None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ModelStage:
    """One stage of training, over a learner's module.

    Attributes:
        name: for records and noise addresses.
        objective: wraps the module so that it maps (batch, draw) to a loss.
        parts: first name components of the parameters it trains.
        feeds: training and validation samples, made when the stage begins.
        batch_size: samples per update.
        needs: the random numbers it uses.
    """

    name: str
    objective: Callable[[nn.Module], nn.Module]
    parts: tuple[str, ...]
    feeds: Callable[[Learner], tuple[Feed, Feed]]
    batch_size: int
    needs: Needs = Needs()


Row = dict[str, Any]
"""What one epoch gave, as JSON values: stage, epoch, train and valid per member, seconds."""
Listener = Callable[[Row], None]


def train_stages(
    learner: Learner,
    stages: Sequence[ModelStage],
    how: Fit,
    *,
    seeds: Sequence[int],
    folder: Path | None = None,
    identity: Mapping[str, Any] = MappingProxyType({}),
    listeners: Sequence[Listener] = (),
) -> tuple[dict[str, State], list[dict[str, Any]]]:
    """Trains; returns each stage's best weights, with a leading member axis, and a row per epoch.

    Args:
        learner: the weights.
        stages: what to do, in order.
        how: the settings.
        seeds: of the learner's members.
        folder: where progress is kept and gone on with; None leaves nothing.
        identity: what was asked for; progress of another run is refused.
        listeners: called after every epoch, when it is saved.
    """
    fewer = {"pretrain": how.pretrain_epochs or how.epochs}
    totals = [fewer.get(stage.name, how.epochs) for stage in stages]
    best: dict[str, State] = {}
    history: list[dict[str, Any]] = []
    with ExitStack() as stack:
        stack.enter_context(matmul_precision(how.precision))
        display = stack.enter_context(Display(unit="epochs")) if how.progress else None
        title = "training of seeds " + ", ".join(map(str, seeds))
        run = Run(folder, plain(identity), title=title, total=sum(totals), display=display)
        stack.enter_context(run)
        found = run.resume()
        begun = 0
        if found is not None:
            begun, history = found.record["stage"], list(found.record["history"])
            learner.load(under(found.tensors, "weights"))
        for number, (stage, epochs) in enumerate(zip(stages, totals, strict=True)):
            if found is not None and number < begun:
                best[stage.name] = under(found.tensors, f"done/{stage.name}")
                continue
            work = _StageWork(learner, stage, how, seeds)
            if found is not None and number == begun:
                work.restore(found)

            def state(number: int = number, work: _StageWork = work) -> Checkpoint:
                done = {f"done/{s}/{n}": v for s, own in best.items() for n, v in own.items()}
                weights = {f"weights/{n}": v for n, v in learner.state().items()}
                record = {"stage": number, "epoch": work.epoch, "best": work.lowest}
                return Checkpoint(
                    step=sum(totals[:number]) + work.epoch,
                    record={**record, "history": history},
                    tensors=weights | done | work.tensors(),
                )

            while work.epoch < epochs:
                report = work.run_epoch()
                history.append(report)
                step = sum(totals[:number]) + work.epoch
                if work.epoch == epochs or work.epoch % how.checkpoint_every == 0:
                    run.save(state())
                valid = " ".join(f"{value:.4g}" for value in report["valid"])
                run.show(step, f"{stage.name}, valid {valid}")
                if how.tensorboard:
                    for kind in ("train", "valid"):
                        values = zip(seeds, report[kind], strict=True)
                        run.log(work.epoch, {f"{stage.name}/{kind}/seed-{s}": v for s, v in values})
                run.keep(step, state)
                for listener in listeners:
                    listener(report)
            if any(math.isinf(value) for value in work.lowest):
                raise InvalidValueError(
                    f"the validation loss of stage {stage.name!r} was never a number",
                    fix="Lower learning_rate, or use precision='float32'",
                )
            best[stage.name] = work.best
    return best, history


@final
class _StageWork:
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
        on_gpu = self.device.type == "cuda"
        trained = list(learner.trained(stage.parts).values())
        self.optimizer = torch.optim.Adam(
            trained, lr=how.learning_rate, fused=True, capturable=on_gpu
        )
        self.train_feed, self.valid_feed = stage.feeds(learner)
        if how.compile:
            torch.compiler.reset()  # else earlier models' versions count against its limit
        self._update, self._measure = self._steps()

    def _steps(self) -> tuple[Step, Step]:
        """Returns a step that updates the weights, and one that only measures."""

        def losses(feed: Feed) -> Callable[[Any, Draw], Tensor]:
            axes = (feed.axes, Draw(0, 0, 0, None))  # type: ignore[arg-type]

            def of(batch: Any, draw: Draw) -> Tensor:
                with autocast(self.device.type, self.how.precision):
                    return self.learner.call(self.objective, (batch, draw), axes).float()

            return torch.compile(of) if self.how.compile else of

        in_training, in_validation = losses(self.train_feed), losses(self.valid_feed)

        def update(chosen: Tensor, draw: Draw) -> Tensor:
            self.optimizer.zero_grad(set_to_none=True)
            values = in_training(self.train_feed.load(chosen), draw)
            values.sum().backward()
            self.optimizer.step()
            return values.detach()

        @torch.no_grad()
        def measure(chosen: Tensor, draw: Draw) -> Tensor:
            return in_validation(self.valid_feed.load(chosen), draw)

        if self.device.type == "cuda" and self.how.cuda_graphs and self.stage.needs.graphs is None:
            return _GraphedStep(update), _GraphedStep(measure)
        return update, measure

    def run_epoch(self) -> Row:
        """Trains one epoch, validates, keeps the best weights."""
        began, how, name = time.perf_counter(), self.how, self.stage.name
        seeds = self.seeds if how.order_seed is None else (how.order_seed,)
        orders = [
            batch_order(self.train_feed.count, seed=seed, stage=name, epoch=self.epoch)
            for seed in seeds
        ]
        order = torch.as_tensor(np.stack(orders) if len(orders) > 1 else orders[0])
        self.objective.train()
        train = self._pass(self._update, order, epoch=self.epoch)
        self.train_feed.check()

        count = self.valid_feed.count
        order = torch.arange(count)
        if how.validation_order == "shuffled":
            order = torch.as_tensor(
                batch_order(count, seed=how.order_seed or 0, stage="validation", epoch=0)
            )
        if how.order_seed is None and self.learner.members > 1:
            order = order.expand(self.learner.members, -1)
        self.objective.eval()
        valid = self._pass(self._measure, order, epoch=None)  # the same negatives every time
        self.valid_feed.check()

        for name_, values in self.learner.state().items():
            for index, (new, old) in enumerate(zip(valid, self.lowest, strict=True)):
                if new < old:
                    self.best[name_][index].copy_(values[index])
        pairs = zip(valid, self.lowest, strict=True)
        self.lowest = tuple(new if new < old else old for new, old in pairs)
        self.epoch += 1
        told = {"stage": name, "epoch": self.epoch, "train": list(train), "valid": list(valid)}
        return {**told, "seconds": round(time.perf_counter() - began, 3)}

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
        cuda = [self.device.index or 0] if self.device.type == "cuda" else []
        with torch.random.fork_rng(devices=cuda):
            # Dropout draws from torch's own generator; inside the fork it is a function of this.
            rng = generator(seed=self.seeds[0], name=f"{name}/dropout", episode=at)
            torch.manual_seed(int(rng.integers(2**62)))
            for chosen, draw in zip(batches, numbers, strict=True):
                if epoch is None:
                    draw = draw._replace(structural=False)
                total += step(chosen, draw)
        return tuple(float(value) for value in total / len(batches))

    def tensors(self) -> State:
        """Returns best weights and optimiser state under prefixed names."""
        best = {f"best/{name}": values for name, values in self.best.items()}
        return best | adam_tensors(self.optimizer, "adam")

    def restore(self, found: Checkpoint) -> None:
        """Goes back to a saved epoch; the learner's weights are loaded by the run."""
        self.epoch, self.lowest = found.record["epoch"], tuple(found.record["best"])
        for name, values in under(found.tensors, "best").items():
            self.best[name].copy_(values)
        restore_adam(self.optimizer, found.tensors, "adam")


def batch_order(count: int, *, seed: int, stage: str, epoch: int) -> np.ndarray:
    """Returns a permutation (count,) int64: in which order an epoch visits its samples."""
    return generator(seed=seed, name=f"fit/{stage}/order", episode=epoch).permutation(count)


def draws(
    needs: Needs,
    sizes: Sequence[int],
    *,
    seeds: Sequence[int],
    name: str,
    epoch: int,
    device: torch.device,
) -> Iterator[Draw]:
    """Yields one Draw per batch size, every tensor with a leading axis over seeds."""
    host = [generator(seed=seed, name=name, episode=epoch) for seed in seeds]
    local = [torch.Generator(device).manual_seed(int(rng.integers(2**62))) for rng in host]
    none = torch.empty(len(seeds), 0, device=device)
    orders = [none] * len(sizes)
    if needs.negatives:  # sent to the device in one piece
        rows = [np.concatenate([rng.permutation(size) for size in sizes]) for rng in host]
        orders = list(torch.as_tensor(np.stack(rows)).to(device).split(list(sizes), dim=1))
    for step, size in enumerate(sizes):
        normal = uniform = none
        if needs.normal is not None:
            shape = (2, size, *needs.normal)
            normal = torch.stack([torch.randn(shape, generator=g, device=device) for g in local])
        if needs.graphs is not None:
            drawn = [torch.rand(needs.graphs, generator=g, device=device) for g in local]
            uniform = torch.stack(drawn)
        structural = needs.graphs is not None and (step // _PHASE) % 2 == 1
        yield Draw(orders[step], normal, uniform, structural)


@final
class _GraphedStep:
    """A step recorded once as a CUDA graph and replayed: no launch cost per kernel.

    Batches of another size than the first (an epoch's last) run plainly.
    """

    def __init__(self, step: Step) -> None:
        self._step = step
        self._seen = 0
        self._size = -1
        self._graph: torch.cuda.CUDAGraph | None = None
        self._stream = torch.cuda.Stream()

    def __call__(self, chosen: Tensor, draw: Draw) -> Tensor:
        """Returns the losses of one batch."""
        if self._size < 0:
            self._size = chosen.shape[-1]
        if chosen.shape[-1] != self._size:
            return self._step(chosen, draw)
        if self._seen < _EAGER_STEPS:
            self._seen += 1
            # Plainly, on the stream that the graph will be recorded on.
            self._stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(self._stream):
                losses = self._step(chosen, draw)
            torch.cuda.current_stream().wait_stream(self._stream)
            return losses
        if self._graph is None:
            self._chosen = chosen.clone()
            order, normal, uniform = (part.clone() for part in draw[:3])
            self._draw = Draw(order, normal, uniform, structural=False)
            self._graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self._graph, stream=self._stream):
                self._losses = self._step(self._chosen, self._draw)
        self._chosen.copy_(chosen)
        for mine, given in zip(self._draw[:3], draw[:3], strict=True):
            mine.copy_(given)
        self._graph.replay()
        return self._losses
