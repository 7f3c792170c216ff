"""Training of SB3 baselines under a curriculum, with checkpoints that lose nothing."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from numbers import Real
from pathlib import Path
from typing import Annotated, Any, Protocol, cast

import gymnasium as gym
import tyro
from rich.console import Console

from interverse.actors.curriculum import training_curriculum
from interverse.agents import AGENTS, presets, tagged
from interverse.agents.presets import Hyper, Preset, preset
from interverse.agents.sb3 import WorldVecEnv, checkpoint, export, restore
from interverse.core.errors import (
    FileFormatError,
    InvalidValueError,
    check_name,
    check_whole,
    explain,
    missing_extra,
)
from interverse.core.files.checkpoints import Checkpoint
from interverse.core.run import Display, Run
from interverse.core.type_checks import Check, check_type, number, one_of, validated, whole
from interverse.envs.make import check_options
from interverse.models.steps import check_device
from interverse.rollouts.exported import ExportedPolicy
from interverse.rollouts.policy_world import space_note
from interverse.rollouts.saved import POLICY_FOLDER
from interverse.scm.variable import SPACE_NAMES, SpaceName
from interverse.worlds.own_code import own_code
from interverse.worlds.world import engine_of

try:
    import numpy as np
    import torch
    from stable_baselines3 import TD3, HerReplayBuffer
    from stable_baselines3.common.base_class import BaseAlgorithm
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.logger import KVWriter, Logger
    from stable_baselines3.common.noise import NormalActionNoise
    from stable_baselines3.common.policies import ActorCriticPolicy

    from interverse.agents.training import record_of, run_of, trained_by
except ImportError as error:
    raise missing_extra("stable-baselines3", "rl") from error

_MOST_SEED = 2**32 - 1  # what Stable-Baselines3 takes
_MOST = 10**12
_NOISE = 0.1  # standard deviation of the actions of TD3 and its kind while they explore
# Arguments of the SB3 classes that are the run's own, or no plain values.
_OURS = {"policy", "env", "seed", "policy_kwargs", "device", "verbose", "tensorboard_log"} | {
    "action_noise",
    "replay_buffer_class",
    "rollout_buffer_class",
    "_init_setup_model",
}
_COUNTS = {"batch_size", "buffer_size", "n_epochs", "n_steps", "policy_delay", "train_freq"}
_COUNTS |= {"stats_window_size", "target_update_interval"}
_ABOVE_ZERO = {"clip_range", "clip_range_vf", "learning_rate", "max_grad_norm", "target_kl"}
_FROM_ZERO = {"ent_coef", "target_noise_clip", "target_policy_noise", "vf_coef"}
_BOUNDS: Mapping[str, Check] = {
    **dict.fromkeys(_COUNTS, whole(_MOST)),
    **dict.fromkeys(("gae_lambda", "gamma", "tau"), number(most=1.0)),
    **dict.fromkeys(_ABOVE_ZERO, number(most=_MOST, above=True)),
    **dict.fromkeys(_FROM_ZERO, number(most=_MOST)),
    "gradient_steps": whole(_MOST, least=-1),  # -1: as many as steps were made
    "learning_starts": whole(_MOST, least=0),
}


def check_hyper(kind: Any, given: Mapping[str, Any]) -> None:
    """Raises for a hyper-parameter of another type than an SB3 class declares, or out of range."""
    declared = kind.__init__.__annotations__
    for name, value in given.items():
        check_type(name, value, declared.get(name, Any))
        if isinstance(value, Real) and name in _BOUNDS:  # not a schedule, "auto", or nothing
            _BOUNDS[name](value, name=name)


@dataclass(frozen=True, kw_only=True)
@validated
class Train:
    """Trains a baseline; started again with the same flags, it goes on where it stopped."""

    task: str
    """A world's id, such as trifinger/pushing-v1."""
    out: Path
    """A folder for checkpoints, logs and the exported policy."""
    algorithm: Annotated[str, one_of(tagged("states"))] = "sb3_ppo"
    """sb3_ppo, sac or td3; others have flags of their own: `--algorithm NAME --help`."""
    preset: Preset = "small"
    """ "paper" (CausalWorld's networks, hyper-parameters, worlds and steps) or "small"."""
    steps: int | None = None
    """Environment steps in all, the preset's by default; an algorithm finishes its batch."""
    curriculum: int = 0
    """CausalWorld's: 0 none, 1 goals, 2 everything."""
    space: Annotated[SpaceName, one_of(SPACE_NAMES)] = "A"
    """The space that training draws from; B and A_B are the tests', and the run says so."""
    actor: tuple[str, ...] = ()
    """Actors of a curriculum of your own, such as visual or physical_properties:group=block."""
    her: bool = False
    """Hindsight experience replay: learn from the goals that were reached; sac and td3."""
    seed: Annotated[int, whole(_MOST_SEED, least=0)] = 0
    """The seed of everything."""
    num_envs: int | None = None
    """Worlds in the batch; the preset's by default."""
    checkpoint_every: Annotated[int, whole(_MOST)] = 20_000
    """Steps between checkpoints; what a kill can cost at most."""
    options: Annotated[dict[str, Any], tyro.conf.Suppress] = field(default_factory=dict)
    """Options of the world, as for make."""
    threads: Annotated[int, whole(1024)] = 1  # OpenMP ends a process that asks for a million
    """Torch threads; with one, a resumed run equals an unbroken one to the last bit."""
    device: str = "cpu"
    """Where the networks are: cpu or cuda. The worlds stay on the CPU."""
    hyper: Annotated[dict[str, Any], tyro.conf.Suppress] = field(default_factory=dict)
    """Other arguments of the SB3 class than the preset's, by name; net and tanh make networks."""
    wandb: str | None = None
    """A project of Weights & Biases that gets the curves too; needs the extra wandb."""

    def __post_init__(self) -> None:
        check_device(self.device)
        if self.steps is None:
            object.__setattr__(self, "steps", preset(self.algorithm, self.preset).steps)
        check_whole(self.steps, "steps", _MOST)
        taken = inspect.signature(AGENTS.load(self.algorithm)).parameters
        if self.her and "replay_buffer_class" not in taken:
            problem = f"her is on with algorithm {self.algorithm}"
            raise InvalidValueError(problem, allowed="sac and td3, which have a replay")
        if "space" in self.options:
            raise InvalidValueError(
                f"option space is {self.options['space']!r}", fix="Give space itself"
            )
        training_curriculum(self.curriculum, self.actor, self.space)
        _hyper(self)


class SharedTrunk(ActorCriticPolicy):
    """A perceptron whose hidden layers actor and critic share, as in Stable-Baselines 2."""

    def _build_mlp_extractor(self) -> None:
        super()._build_mlp_extractor()
        self.mlp_extractor.value_net = self.mlp_extractor.policy_net


class Watcher(Protocol):
    """Something that looks at a run when it starts and before each checkpoint is written."""

    def started(self, steps: int) -> None:
        """Hears after how many steps the run begins or goes on."""

    def reached(self, policy: ExportedPolicy, steps: int) -> None:
        """Hears of the policy after so many steps."""


def train(config: Train, *, watcher: Watcher | None = None, progress: bool = False) -> Path:
    """Trains and returns the folder of the exported policy."""
    if note := space_note(config.space):
        Console(stderr=True).print(note, soft_wrap=True)
    steps, threads = cast(int, config.steps), torch.get_num_threads()
    torch.set_num_threads(config.threads)
    with ExitStack() as stack:
        stack.callback(torch.set_num_threads, threads)
        env = make_env(config)
        stack.callback(env.close)
        model, record = make_model(config, env), run_record(config, env)
        code = own_code(config.task, world_options(config))
        display = stack.enter_context(Display(show=progress))
        run = run_of(config, record, code, total=steps, display=display)
        stack.enter_context(run)
        model.set_logger(Logger(None, [_Curves(run)]))
        held, folder = run.resume(), config.out / POLICY_FOLDER
        # The step that the next regular checkpoint comes after: a stop in between moves none.
        until = None if held is None else restore(model, env, held)

        def state(until: int | None = None) -> Checkpoint:
            policy = _policy(record, model)
            # Where nothing was learned the files stay: results are tied to their bytes.
            if not _holds(folder, policy):
                policy.save(folder)
            return checkpoint(model, env, until)

        if watcher is not None:
            watcher.started(model.num_timesteps)
        while model.num_timesteps < steps:
            done = model.num_timesteps
            end = until or min(done + config.checkpoint_every, steps)
            pace = _Pace(run, partial(state, end))
            model.learn(end - done, callback=pace, reset_num_timesteps=done == 0)
            if watcher is not None:  # before the checkpoint: a kill in between repeats it
                watcher.reached(_policy(record, model), model.num_timesteps)
            until = None
            run.save(state())
        if not _holds(folder, _policy(record, model)):
            _policy(record, model).save(folder)
        return folder


class _Pace(BaseCallback):
    """Shows steps and returns while a model learns, and keeps or ends the run between batches."""

    def __init__(self, run: Run, state: Callable[[], Checkpoint]) -> None:
        super().__init__()
        self._run, self._state = run, state

    def _on_rollout_start(self) -> None:
        # Model and worlds are at rest here, and nowhere else.
        self._run.keep(self.num_timesteps, self._state)

    def _on_step(self) -> bool:
        recent: Any = self.model.ep_info_buffer or ()
        returns = [episode["r"] for episode in recent]
        mean = f"return {sum(returns) / len(returns):.4g}" if returns else None
        self._run.show(self.num_timesteps, mean)
        return True


class _Curves(KVWriter):
    """Writes what a model logs as the run's curves."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def write(
        self, key_values: dict[str, Any], key_excluded: dict[str, tuple[str, ...]], step: int = 0
    ) -> None:
        """Writes the numbers among the values."""
        kept = {n: v for n, v in key_values.items() if "tensorboard" not in key_excluded[n]}
        self._run.log(step, {n: float(v) for n, v in kept.items() if isinstance(v, Real)})

    def close(self) -> None:
        """Does nothing: the run ends its curves."""


def _holds(folder: Path, policy: ExportedPolicy) -> bool:
    """Returns whether a folder holds a policy of the same weights after as many steps."""
    try:
        saved = ExportedPolicy.load(folder)
    except FileFormatError:
        return False
    same = saved.card.trained.get("steps") == policy.card.trained.get("steps")
    return same and all(torch.equal(saved.weights[k], policy.weights[k]) for k in policy.weights)


def world_options(config: Train) -> dict[str, Any]:
    """Returns the options of the run's worlds: the preset's, then those that were given."""
    return {**presets.world_options(config.task, config.preset), **config.options}


def _policy(record: dict[str, Any], model: BaseAlgorithm) -> ExportedPolicy:
    return export(model, trained_by(record, model.num_timesteps))


def run_record(config: Train, env: WorldVecEnv) -> dict[str, Any]:
    """Returns all that a run is made with, JSON-ready: every setting, given or not, and the engine.

    `settings` has every argument of the SB3 class, `horizon` is the length of an episode in steps.
    """
    world, hyper = env.venv.unwrapped.world, _hyper(config)
    known = inspect.signature(AGENTS.load(config.algorithm)).parameters.items()
    defaults = {name: p.default for name, p in known if name not in _OURS}
    noise = {"action_noise": _NOISE} if issubclass(AGENTS.load(config.algorithm), TD3) else {}
    network = {"net": hyper.net, "tanh": hyper.tanh}
    if hyper.shared:
        network["shared"] = True
    more = {
        "num_envs": env.num_envs,
        "options": world_options(config),
        "horizon": world.max_steps,
        "settings": {**defaults, **_settings(config, env), **noise, **network},
        "engine": engine_of(world),
    }
    return record_of(config, more)


def make_env(config: Train) -> WorldVecEnv:
    """Returns the worlds of a run, with the seeds that training has to itself."""
    hyper = preset(config.algorithm, config.preset)
    count = hyper.num_envs if config.num_envs is None else config.num_envs
    drawn = training_curriculum(config.curriculum, config.actor, config.space)
    curriculum = drawn if drawn.stages else None
    options = {**world_options(config), "space": config.space}
    check_options(config.task, options)
    env = WorldVecEnv(config.task, count, curriculum, goals=config.her, **options)
    seen: Any = env.observation_space["observation"] if config.her else env.observation_space  # type: ignore[index]
    for name, space in (("observation", seen), ("action", env.action_space)):
        if not (isinstance(space, gym.spaces.Box) and len(space.shape) == 1):
            env.close()
            control = config.task.rpartition(":")[2].startswith("control/")
            states = 'Pass --option observation=state (observation="state" in Python). '
            raise InvalidValueError(
                f"{config.task} has a {type(space).__name__} {name} space",
                allowed="flat boxes: train learns a multilayer perceptron",
                fix=f"{states * control}Or use a pixel agent, such as sac_aug, or SB3",
            )
    env.seed(config.seed)
    return env


def make_model(config: Train, env: WorldVecEnv) -> BaseAlgorithm:
    """Returns the untrained model of a run."""
    hyper = _hyper(config)
    network = {
        "net_arch": list(hyper.net),
        "activation_fn": torch.nn.Tanh if hyper.tanh else torch.nn.ReLU,
    }
    settings = _settings(config, env)
    kind = AGENTS.load(config.algorithm)
    if issubclass(kind, TD3):
        size = env.action_space.shape or ()
        settings["action_noise"] = NormalActionNoise(np.zeros(size), np.full(size, _NOISE))
    if config.her:
        settings["replay_buffer_class"] = HerReplayBuffer
    settings |= {"seed": config.seed, "policy_kwargs": network, "device": config.device}
    try:
        with warnings.catch_warnings(category=UserWarning, action="ignore"):  # a smaller last batch
            plain: Any = SharedTrunk if hyper.shared else "MlpPolicy"
            model = kind("MultiInputPolicy" if config.her else plain, env, **settings)
    except (TypeError, ValueError, AssertionError) as error:
        if not config.hyper:
            raise
        given = ", ".join(f"{name}={value!r}" for name, value in config.hyper.items())
        raise InvalidValueError(explain(f"{kind.__name__} refuses {given}: {error}")) from error
    env.seed(config.seed)
    return model


def _settings(config: Train, env: WorldVecEnv) -> dict[str, Any]:
    """Returns the plain arguments of the SB3 class that are not its defaults."""
    settings = dict(_hyper(config).settings)
    if config.her:
        # A goal can be relabelled once an episode has ended, in every world at about the same time.
        whole = (env.venv.unwrapped.world.max_steps + 1) * env.num_envs
        settings["learning_starts"] = max(settings.get("learning_starts", 100), whole)
    return settings


def _hyper(config: Train) -> Hyper:
    """Returns the preset's hyper-parameters with those that were given instead."""
    hyper = preset(config.algorithm, config.preset)
    known = {*inspect.signature(AGENTS.load(config.algorithm)).parameters, "net", "tanh"} - _OURS
    for name in config.hyper:
        check_name("hyper-parameter", name, known)
    given = dict(config.hyper)
    made = {name: given.pop(name) for name in ("net", "tanh") if name in given}
    check_hyper(AGENTS.load(config.algorithm), given)
    return replace(hyper, settings={**hyper.settings, **given}, **made)
