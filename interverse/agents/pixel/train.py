"""Training pixel agents: `interverse train --algorithm sac_aug`, or `train(PixelTrain(...))`.

A run acts, learns, evaluates, and keeps its curves and checkpoints; several go side by side.
"""

from __future__ import annotations

import functools
import gc
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, nullcontext
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar, final

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from interverse._version import __version__
from interverse.agents.pixel.actors import Actors, MakeEnv
from interverse.agents.pixel.agent import Actions, Agent, PixelLearner
from interverse.agents.pixel.config import PixelPlan, PixelTrain, check_together, plan
from interverse.agents.pixel.graphed import GraphedUpdate
from interverse.agents.pixel.replay import PixelMoment, Replay
from interverse.agents.pixel.tdmpc2 import TdMpc2
from interverse.agents.training import run_of, trained_by
from interverse.core.errors import FileFormatError, InvalidValueError, missing_extra
from interverse.core.files.atomic import storage, write_json
from interverse.core.files.checkpoints import Checkpoint
from interverse.core.rng import generator
from interverse.core.run import CHECKPOINTS, Display, Run, patient_interrupt
from interverse.envs import make
from interverse.models.steps import autocast, matmul_precision
from interverse.rollouts.exported import PicturePolicy, PixelCard, PixelPolicy
from interverse.rollouts.planned import planned_policy
from interverse.rollouts.saved import POLICY_FOLDER
from interverse.worlds.own_code import own_code

try:
    import torch
    from torch import Tensor, nn
except ImportError as error:
    raise missing_extra("torch", "torch") from error

_P = ParamSpec("_P")
_R = TypeVar("_R")
CURVES = "curves.json"
_CURVES = ("episodes", "evaluations", "losses")
_LOG_EVERY = 500  # decisions between rows of losses
_AGENT = "agent/"


def export(
    agent: PixelLearner,
    observations: gym.spaces.Box,
    actions: gym.spaces.Box,
    trained: dict[str, Any],
) -> PicturePolicy:
    """Returns the agent's mean or planned action as a policy for worlds with these spaces."""
    shape, low, high = list(observations.shape), actions.low.tolist(), actions.high.tolist()
    if isinstance(agent, TdMpc2):
        return planned_policy(agent.networks.model, shape, (low, high), trained)
    assert isinstance(agent, Agent)
    nets = agent.networks
    trunk = nets.encoder.trunk if nets.actor_trunk is None else nets.actor_trunk
    linear = [layer for layer in nets.actor.layers if isinstance(layer, nn.Linear)]
    parts: dict[str, Any] = {"trunk": trunk.linear, "norm": trunk.norm}
    parts |= {f"conv.{i}": layer for i, layer in enumerate(nets.encoder.convolutions)}
    parts |= {f"actor.{i}": layer for i, layer in enumerate(linear)}
    weights: dict[str, Tensor] = {}
    for name, part in parts.items():
        weights[f"{name}.weight"] = part.weight.detach().cpu().clone()
        weights[f"{name}.bias"] = part.bias.detach().cpu().clone()
    card = PixelCard(
        observation=shape,
        image_size=agent.sizes.pictures[1],
        convolutions=len(nets.encoder.convolutions),
        layers=len(linear),
        low=low,
        high=high,
        trained=trained,
        squash=trunk.squash,
    )
    return PixelPolicy(card, weights)


def _on_stream(
    method: Callable[Concatenate[PixelRun, _P], _R],
) -> Callable[Concatenate[PixelRun, _P], _R]:
    """Has a GPU do what a method asks for on the run's stream."""

    @functools.wraps(method)
    def queued(self: PixelRun, /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        with self.stream():
            return method(self, *args, **kwargs)

    return queued


@final
class PixelRun:
    """The parts of a run and how far it is.

    Args:
        config: what to train, and how.
        plan: what it comes to.
        make_env: makes what it learns in.
        make_judge: makes what it is evaluated in; the same by default.
        own_stream: whether a GPU has a stream for this run alone, so that it works on several runs
            at once; otherwise the present one is used.

    Attributes:
        step: agent decisions so far, of all actors together.
        agent: who learns.
        curves: rows of episodes that exploration finished, of evaluations and of losses, each with
            the step it belongs to.
    """

    def __init__(
        self,
        config: PixelTrain,
        plan: PixelPlan,
        make_env: MakeEnv,
        make_judge: MakeEnv | None = None,
        *,
        own_stream: bool = False,
    ) -> None:
        self._config, self._plan, self.step = config, plan, 0
        on_gpu = torch.device(config.device).type == "cuda"
        self._stream = torch.cuda.Stream(config.device) if own_stream and on_gpu else None
        self._judge = (make_env if make_judge is None else make_judge)()
        try:
            self.observation_space, self.action_space = check_spaces(self._judge, plan)
        except InvalidValueError:
            self._judge.close()
            raise
        hyper, (channels, side, _) = plan.hyper, self.observation_space.shape
        sizes = hyper.sizes(channels, self.action_space.shape[0])
        with self.stream():
            seed, device = config.seed, config.device
            self.agent = plan.kind(hyper, sizes, seed, device, plan.agent_options)
            if config.compiled:
                self.agent.compile()
            self._replay = Replay(
                capacity=hyper.capacity,
                lanes=config.actors,
                frame=(channels // hyper.frame_stack, side, side),
                actions=sizes.actions,
                stack=hyper.frame_stack,
                device=config.device,
                discounts=tuple(hyper.discount**k for k in range(self.agent.returns)),
                sequences=self.agent.sequences,
            )
            self._update = GraphedUpdate(self.agent, self._replay.gather)
        self._rng = generator(seed=config.seed, name="pixel/replay")
        self.curves: dict[str, list[dict[str, Any]]] = {name: [] for name in _CURVES}
        self._keeper: Run | None = None
        self._actors = Actors(make_env, config.actors)
        self._losses: dict[str, torch.Tensor] = {}
        self._acted = np.zeros((0,), np.float32)  # what every lane does now, between both halves
        self._seen = np.zeros((0,), np.uint8)  # what every lane sees now, once begun
        self._ages = np.zeros(config.actors, dtype=np.int64)

    @property
    def _folder(self) -> Path:
        return self._config.out / CHECKPOINTS

    def stream(self) -> AbstractContextManager[object]:
        """Returns the context in which a GPU works on this run's stream, if it has its own."""
        return nullcontext() if self._stream is None else torch.cuda.stream(self._stream)

    @_on_stream
    def start(self, keeper: Run | None = None) -> None:
        """Goes back to the last checkpoint of the run that keeps it, or begins."""
        self._keeper = keeper
        held = None if keeper is None else keeper.resume()
        if held is not None:
            self._restore(held)
        else:
            self._seen = self._actors.reset(self._seed("pixel/actors"))

    def _seed(self, name: str, number: int = 0) -> int:
        draw = generator(seed=self._config.seed, name=name, step=number)
        return int(draw.integers(2**31))

    def advance(self) -> None:
        """Makes one step of every actor and the updates that it earns."""
        self.begin()
        self.finish()

    @_on_stream
    def begin(self) -> None:
        """Begins a step: the actors are told what to do, and move on their own.

        With `overlap`, updates learn from the steps before this one while the actors move. A GPU
        has the first update queued before the actions are awaited, so it never idles; the order of
        what it does is fixed.
        """
        asked = self._actions()
        if self._config.overlap:
            self._learn(most=1)
        self._acted = asked()
        self._actors.begin(self._stretched(self._acted))
        if self._config.overlap:
            self._learn()

    @_on_stream
    def finish(self) -> None:
        """Finishes the step that was begun: stores it, and makes the updates still owed."""
        steps = self._actors.finish()
        frames = self._seen[:, -self._replay.frame_channels :]
        done = PixelMoment(frames, self._ages, self._acted, steps.rewards, steps.terminated)
        self._replay.add(done)
        before, decided = self.step, steps.ages > 0
        self.step += int(decided.sum())
        self._seen, self._ages = steps.observations, steps.ages
        for lane in np.flatnonzero(~np.isnan(steps.returns)).tolist():
            total, length = float(steps.returns[lane]), int(steps.ages[lane])
            self._note("episodes", "episode", {"return": total, "length": length})
        losses = self._losses if self._config.overlap else self._learn()
        if losses and before // _LOG_EVERY != self.step // _LOG_EVERY:
            values = {name: float(value) for name, value in losses.items()}  # waits for the device
            self._note("losses", "loss", values)

    def _note(self, kind: str, title: str, values: dict[str, float]) -> None:
        """Adds a row to a curve, for TensorBoard too."""
        self.curves[kind].append({"step": self.step, **values})
        if self._keeper is not None:
            self._keeper.log(self.step, {f"{title}/{n}": value for n, value in values.items()})

    def _actions(self) -> Actions:
        """Asks for actions in [-1, 1]: random ones during the warm-up."""
        shape = (len(self._seen), *self.action_space.shape)
        if self.step < self._plan.hyper.warm_up:
            drawn = self._rng.uniform(-1.0, 1.0, shape).astype(np.float32)
            return lambda: drawn
        with autocast(self.agent.device.type, self._config.precision):
            return self.agent.begin(self._seen, explore=True, fresh=self._ages == 0)

    def _learn(self, most: int | None = None) -> dict[str, torch.Tensor]:
        """Makes the updates owed so far, or a few; returns the latest value of every loss."""
        hyper = self._plan.hyper
        owed = int((self.step - hyper.warm_up) * hyper.update_rate) - self.agent.updates
        for _ in range(owed if most is None else min(owed, most)):
            draw = self._replay.draw(self.agent.drawn, self._rng)
            with autocast(self.agent.device.type, self._config.precision):
                self._losses |= self._update(draw)  # not every update trains the actor
        return self._losses

    def _stretched(self, actions: NDArray[np.float32]) -> NDArray[np.float32]:
        low, high = self.action_space.low, self.action_space.high
        stretched = low + 0.5 * (actions + 1.0) * (high - low)
        return np.clip(stretched, low, high).astype(self.action_space.dtype)

    @_on_stream
    def evaluate(self) -> list[float]:
        """Returns the returns of a few episodes with the mean action; always the same episodes."""
        returns = []
        for number in range(self._config.evaluate_episodes):
            seen, _ = self._judge.reset(seed=self._seed("pixel/evaluation", number))
            total, done = 0.0, False
            while not done:
                action = self._stretched(self.agent.act(seen[None], explore=False))[0]
                seen, reward, terminated, truncated, _ = self._judge.step(action)
                total, done = total + float(reward), terminated or truncated
            returns.append(total)
        mean = sum(returns) / len(returns)
        self.curves["evaluations"].append({"step": self.step, "mean": mean, "returns": returns})
        if self._keeper is not None:
            self._keeper.log(self.step, {"evaluation/return": mean})
            self._keeper.show(self.step, f"return {mean:.1f}")
        return returns

    @_on_stream
    def checkpoint(self) -> Checkpoint:
        """Returns all that the rest of the run depends on; what is new to replay is written."""
        lanes, replay = self._actors.save(), self._replay.save(self._folder)
        tensors = {_AGENT + key: value for key, value in self.agent.state().items()}
        for i, lane in enumerate(lanes):
            moment = np.frombuffer(lane.pop("moment"), dtype=np.uint8)
            tensors[f"actor/{i}"] = torch.from_numpy(moment.copy())
        record = {
            "version": __version__,
            "updates": self.agent.updates,
            "rng": self._rng.bit_generator.state,
            "lanes": lanes,
            "replay": replay,
            "curves": self.curves,
            "losses": {name: float(value) for name, value in self._losses.items()},
        }
        files = tuple(file["name"] for file in replay["files"])
        return Checkpoint(step=self.step, record=record, tensors=tensors, files=files)

    @_on_stream
    def policy(self) -> PicturePolicy:
        """Returns the mean or planned action as a policy."""
        options = dict(self._plan.world_options)
        trained = trained_by(self._config.record(), self.step, options=options)
        return export(self.agent, self.observation_space, self.action_space, trained)

    def _restore(self, held: Checkpoint) -> None:
        record, tensors = held.record, held.tensors
        try:
            state = {k.removeprefix(_AGENT): v for k, v in tensors.items() if k.startswith(_AGENT)}
            self.agent.load(state, record["updates"])
            self._replay.load(self._folder, record["replay"])
            self._rng.bit_generator.state = record["rng"]
            self.step = held.step
            self.curves.update(record["curves"])
            self._losses = {name: torch.tensor(v) for name, v in record["losses"].items()}
            lanes = [dict(lane) for lane in record["lanes"]]
            for i, lane in enumerate(lanes):
                lane["moment"] = tensors[f"actor/{i}"].numpy().tobytes()
                lane["seed"] = self._seed("pixel/actors", self.step + i)  # without a snapshot
        except (KeyError, TypeError) as error:
            raise FileFormatError(
                f"the checkpoint in {self._folder} is torn: no {error}",
                fix="Delete the folder to start the run afresh",
            ) from error
        self._seen = self._actors.load(lanes)
        self._ages = np.array([lane["age"] if lane["moment"] else 0 for lane in lanes])

    def close(self) -> None:
        """Ends the environments."""
        self._actors.close()
        self._judge.close()


def check_spaces(env: gym.Env[Any, Any], plan: PixelPlan) -> tuple[gym.spaces.Box, gym.spaces.Box]:
    """Returns the spaces of an environment of pictures, or raises saying what it gives."""
    seen, acts, hyper = env.observation_space, env.action_space, plan.hyper
    shape = seen.shape if isinstance(seen, gym.spaces.Box) and seen.dtype == np.uint8 else ()
    square = len(shape) == 3 and shape[1] == shape[2]
    if not isinstance(seen, gym.spaces.Box) or not square or shape[0] % 3:
        raise InvalidValueError(
            f"the observation space is {seen}",
            allowed=f"uint8 pictures ({3 * hyper.frame_stack}, S, S), channels first",
            fix="Train on a control world, or use --algorithm sb3_ppo, sac or td3",
        )
    if shape[0] != 3 * hyper.frame_stack:
        raise InvalidValueError(
            f"observations are stacks of {shape[0] // 3} pictures",
            allowed=f"of {hyper.frame_stack}: uint8 pictures ({3 * hyper.frame_stack}, S, S)",
            fix=f"Set --hyper frame_stack={shape[0] // 3}, which the world follows",
        )
    whole = hyper.render_size == hyper.image_size
    if shape[1] < hyper.image_size or (whole and shape[1] != hyper.image_size):
        raise InvalidValueError(
            f"pictures of {shape[1]} pixels",
            allowed=f"{hyper.image_size}" + ("" if whole else " or more"),
            fix=f"Set --hyper image_size={shape[1]}, which the world follows",
        )
    if not isinstance(acts, gym.spaces.Box) or len(acts.shape) != 1 or not acts.is_bounded():
        raise InvalidValueError(f"the action space is {acts}", allowed="a bounded Box of one axis")
    return seen, acts


def train(config: PixelTrain, *, make_env: MakeEnv | None = None, progress: bool = False) -> Path:
    """Trains and returns the folder of the exported policy.

    Args:
        config: what to train, and how.
        make_env: makes the environment, where it is no registered world; it must be picklable if
            there is more than one actor.
        progress: whether to show it on standard error.
    """
    (folder,) = train_together([config], make_env=make_env, progress=progress)
    return folder


def train_together(
    configs: Sequence[PixelTrain], *, make_env: MakeEnv | None = None, progress: bool = False
) -> list[Path]:
    """Trains several runs side by side in this process; returns the folders of their policies.

    Each run is the same as alone, byte for byte on a CPU. On a GPU each has a stream of its own. If
    one fails, all stop; started again, each goes on from its own checkpoint.

    Args:
        configs: what to train, and how, each in a folder of its own, all with the same device,
            precision and threads.
        make_env: makes the environment of every run, as for `train`.
        progress: whether to show it on standard error.
    """
    check_together(configs)
    plans = [plan(config) for config in configs]
    threads, beside = torch.get_num_threads(), len(configs) > 1
    torch.set_num_threads(configs[0].threads)
    folders: dict[int, Path | None] = {}
    with ExitStack() as stack:
        stack.callback(torch.set_num_threads, threads)
        stack.enter_context(matmul_precision(configs[0].precision))
        stop = stack.enter_context(patient_interrupt())  # held until the last run has stopped
        display = stack.enter_context(Display(show=progress, unit="decisions"))
        trainings = [
            stack.enter_context(
                closing(_training(config, planned, make_env, display, own_stream=beside))
            )
            for config, planned in zip(configs, plans, strict=True)
        ]
        # Every run is taken a part further in turn; asked to stop, each does with a checkpoint.
        while len(folders) < len(trainings):
            for number, training in enumerate(trainings):
                if number in folders:
                    continue
                try:
                    next(training)
                except StopIteration as end:
                    folders[number] = end.value
                    gc.collect()  # its memory is free now, not while another records a graph
                except KeyboardInterrupt:
                    if not stop.is_set():
                        raise
                    folders[number] = None
    found = [folder for _, folder in sorted(folders.items()) if folder is not None]
    if len(found) < len(configs):
        raise KeyboardInterrupt
    return found


def _training(
    config: PixelTrain,
    planned: PixelPlan,
    make_env: MakeEnv | None,
    display: Display,
    *,
    own_stream: bool,
) -> Generator[None, None, Path]:
    """Trains one run, pausing wherever others may go on: made, step begun, step finished."""
    learn_in = judge_in = make_env
    if learn_in is None or judge_in is None:
        learn_in = functools.partial(make, config.task, **planned.training_options)
        judge_in = functools.partial(make, config.task, **planned.world_options)
    with (
        storage(config.out),
        closing(PixelRun(config, planned, learn_in, judge_in, own_stream=own_stream)) as run,
    ):
        yield  # nothing is claimed before all could be made
        code = {} if make_env else own_code(config.task, planned.world_options)
        keeper = run_of(
            config,
            config.record(),
            code,
            total=planned.steps,
            display=display,
            every=config.checkpoint_every,
            title=f"{config.algorithm} {config.task} seed {config.seed}",
        )

        def state() -> Checkpoint:
            # Curves and policy come first: a run that was stopped can be evaluated.
            write_json(config.out / CURVES, run.curves)
            run.policy().save(config.out / POLICY_FOLDER)
            return run.checkpoint()

        with keeper:
            run.start(keeper)
            while run.step < planned.steps:
                before = run.step
                run.begin()
                yield
                run.finish()
                over = run.step >= planned.steps
                if over or before // config.evaluate_every != run.step // config.evaluate_every:
                    run.evaluate()
                keeper.show(run.step)
                keeper.keep(run.step, state)
                yield
            return run.policy().save(config.out / POLICY_FOLDER)
