"""`interverse collect`, and `export_original` and `import_original` for CausalMBRL's files."""

from __future__ import annotations

import importlib.util
import warnings
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro
from rich.console import Console

from interverse.cli.flags import AsJson, OptionWords, parse_pair, parse_pairs, tell, values_of
from interverse.core.errors import InvalidValueError, missing_extra
from interverse.data import Collect as CollectConfig
from interverse.data import collect as run
from interverse.data import export_original as write_original
from interverse.data import import_original as read_original
from interverse.data import load_dataset
from interverse.data.collector import progress_bar
from interverse.data.dataset import Dataset
from interverse.data.generate import EXPORTS
from interverse.data.splits import published
from interverse.envs.build import build_world
from interverse.rollouts.policy_world import policy_world

# Flags by kind of data set; a flag of another kind is refused, since it would be ignored.
_KINDS: dict[str, tuple[str, ...]] = {
    "grid": ("episodes", "steps", "images", "contacts", "overwrite"),
    "pairs": ("pairs", "depth", "pairs_per_house", "first_house", "preset", "overwrite"),
    "episodes": ("episodes", "steps", "policy", "twin", "actor", "to", "overwrite"),
}
_FILES = (".h5", ".hdf5", ".lance", ".npz", ".parquet", ".pt", ".zip")
_GRIDS = ("blocks", "chemistry")
_STEPS = 100  # actions of an episode, by default
_PACKAGES = {"lance": "pylance", "minari": "minari"}  # of layouts that need an extra
_ONLY_EPISODES = ("policy", "twin", "actor", "to")  # given, they ask for episodes in any world


@dataclass(frozen=True, kw_only=True)
class CollectCommand:
    """Collects a data set; started again, it goes on where it stopped.

    Without --policy, --twin, --actor or --to, blocks and chemistry give random play, with
    --out FILE.h5 in one file, and rooms give before/after pairs.
    """

    id: Annotated[str, tyro.conf.Positional]
    """A world's id, such as trifinger/pushing-v1 or blocks/observed-3-v1."""
    out: Path
    """The folder to write; for random play of blocks or chemistry also a file, FILE.h5."""
    seed: int | None = None
    """House or episode number n has the address (SEED, n), so two seeds share none. By default 0
    for houses and 2**60 for episodes, where no test is: `evaluate` plays seed 0 by default, and
    the published splits of blocks and chemistry are seeds 1 to 8."""
    episodes: int = 1000
    """How many episodes."""
    steps: int | None = None
    """Actions per episode: by default 100, or all of a shorter episode."""
    images: bool = False
    """Random play of blocks or chemistry: store pixels too, else they are drawn when asked for."""
    contacts: float = 0.0
    """Random play of blocks: how often, from 0 to 1, a push is drawn where there is one. 0 gives
    1.7% pushes with three blocks and 3.0% with five, 0.5 8.2% and 15.1%, 1 10.6% and 18.2%."""
    overwrite: bool = False
    """Replace what holds another data set, of other settings or other code."""
    workers: int = 1
    """How many units of about 60,000 frames, or houses, are made at a time; it changes no byte."""
    cluster: str | None = None
    """A Ray cluster to work on: local, auto or HOST:PORT; without, this machine's processes."""
    option: OptionWords = ()
    pairs: int | None = None
    """Rooms only: how many before/after pairs; 1000, or all of a preset, by default."""
    depth: bool = False
    """Rooms only: keep depth pictures too."""
    policy: str | None = None
    """What acts: random (by default), scripted, or the path of a policy or of a training run."""
    twin: tuple[str, ...] = ()
    """VARIABLE=VALUE; each adds the counterfactual of every episode under that `do`. VALUE is JSON,
    or A or B for a draw from that space."""
    actor: tuple[str, ...] = ()
    """A curriculum: actors that intervene, such as goals or physical_properties:group=block."""
    to: tuple[Literal["parquet", "lance", "worldmodel", "minari"], ...] = ()
    """Other layouts beside OUT, twins as columns: a Hugging Face folder (parquet), a Lance table or
    HDF5 file of stable-worldmodel (lance, worldmodel), Minari."""
    pairs_per_house: int = 25
    """Rooms only: the most pairs of a house; fewer give more houses."""
    first_house: int = 0
    """Rooms only: the first house; sets with other houses share none."""
    preset: str | None = None
    """Rooms only: triplet-30k: 30,000 pairs with test houses of their own, a card and checksums."""
    json: AsJson = False


def collect(config: CollectCommand) -> Path:
    """Collects the data set and says where it is."""
    family = config.id.rpartition(":")[2].partition("/")[0]
    kind = "pairs" if family == "rooms" else "grid" if family in _GRIDS else "episodes"
    if any(getattr(config, name) for name in _ONLY_EPISODES):
        kind = "episodes"
    given = _given(config, kind)
    files = [ending for ending in _FILES if kind != "grid" or ending not in EXPORTS]
    if config.out.suffix.lower() in files:
        beside = {
            "grid": " or FILE.h5",
            "episodes": "; --to worldmodel writes an HDF5 file beside it",
        }
        told = f"--out {config.out} names a file, and {kind} of {config.id} go to a folder"
        raise InvalidValueError(told, fix=f"Name a folder{beside.get(kind, '')}")
    made = {"pairs": _pairs, "grid": _grid, "episodes": _episodes}[kind](given)
    path: Path = made["path"]
    tell(config, made, str(path))
    return path


def _given(config: CollectCommand, kind: str) -> dict[str, Any]:
    """Returns the flags of a kind of data set, or raises for one of another kind."""
    given = values_of(config, "option") | {"options": parse_pairs(config.option)}
    if config.seed is None:
        del given["seed"]
    others = {name for names in _KINDS.values() for name in names} - set(_KINDS[kind])
    for item in fields(config):
        if item.name in others and given.pop(item.name) != item.default:
            raise InvalidValueError(
                f"--{item.name} has no meaning for {config.id}", fix="Leave it out"
            )
    return given


def _steps(given: dict[str, Any]) -> int:
    """Returns how many actions an episode has at most."""
    if given["steps"] is None:
        trained = policy_world(given.get("policy") or "random").in_task(given["id"])
        world = build_world(given["id"], 1, trained.with_options(given["options"]))
        given["steps"] = min(_STEPS, world.max_steps)
        world.close()
    return int(given["steps"])


def _grid(given: dict[str, Any]) -> dict[str, Any]:
    given["steps"] = _steps(given)
    config = CollectConfig(**given | {"progress": True})
    if split := published(config.id, config.seed, config.options):
        _say(f"Seed {config.seed} plays the published split {split!r} of {config.id}.")
    path = run(config)
    return {"path": path, "episodes": given["episodes"]}


def _episodes(given: dict[str, Any]) -> dict[str, Any]:
    from interverse import data
    from interverse.data.episodes import CollectEpisodes, collect_episodes

    twins: list[dict[str, Any]] = []  # a variable may have several, with a value each
    for word in given.pop("twin"):
        twin = dict([parse_pair(word)])
        if twin in twins:  # the draws of a space are the episode's, so they are alike, too
            raise InvalidValueError(f"the twin {word} is given twice", fix="Give it once")
        twins.append(twin)
    layouts, actors = given.pop("to"), given.pop("actor")
    for layout in layouts:  # before an hour of play, not after it
        if layout in _PACKAGES and importlib.util.find_spec(layout) is None:
            raise missing_extra(_PACKAGES[layout], layout)
    given["policy"] = given["policy"] or "random"
    given["steps"] = _steps(given)
    config = CollectEpisodes(**given, twins=tuple(twins), actors=actors)
    with progress_bar(f"{config.id}, {config.policy}", config.episodes, show=True) as advance:
        folder = collect_episodes(config, advance)
    made: dict[str, Any] = {"path": folder, "episodes": config.episodes, "layouts": {}}
    made["twins"] = _tell_refusals(folder, config.episodes)
    for layout in layouts:
        if layout == "minari":
            held = data.TwinFolder(folder)
            name = f"interverse/{held.facts[0].id.replace('/', '-')}/{folder.name}-v0"
            with warnings.catch_warnings(category=UserWarning, action="ignore"):  # no author
                made["layouts"][layout] = data.to_minari(held, name).spec.dataset_id
        else:
            made["layouts"][layout] = getattr(data, f"export_{layout}")(folder)
        _say(f"{layout}: {made['layouts'][layout]}")
    return made


def _tell_refusals(folder: Path, episodes: int) -> list[dict[str, Any]]:
    """Says which share of twins is missing, or leaves out something that was done in the fact.

    Returns:
        Each twin's intervention, how many episodes refused it, and how many twins leave out a do.
    """
    from interverse.data import TwinFolder

    held = TwinFolder(folder)
    made = []
    counts = zip(held.twins, held.refusals(), held.skipped(), held.unchanged(), strict=True)
    for do, refused, skipped, same in counts:
        name = ", ".join(f"{name}={value}" for name, value in do.items())
        for reasons, told in (
            (refused, "refused in {}, which have no such twin"),
            (skipped, "goes on in {} without something that was done in the fact and refused here"),
        ):
            if reasons:
                count, most = sum(reasons.values()), max(reasons, key=lambda why: reasons[why])
                share = f"{count} of {episodes} episodes ({count / episodes:.0%})"
                _say(f"twin {name}: {told.format(share)}: {most}")
        if same:
            share = f"{same} of {episodes} episodes ({same / episodes:.0%})"
            _say(f"twin {name} is the same as its fact in {share}: there it changed nothing")
        gone = {"refused": sum(refused.values()), "skipped": sum(skipped.values())}
        made.append({"do": do, **gone, "unchanged": same})
    return made


def _pairs(given: dict[str, Any]) -> dict[str, Any]:
    from interverse.data.pairs import CollectPairs, PairHeader, collect_pairs
    from interverse.data.pairs.load import collect_preset

    given |= {"progress": True}
    preset, pairs = given.pop("preset"), given.pop("pairs")
    if preset is not None:
        folder = collect_preset(preset, CollectPairs(**given), say=_say, pairs=pairs)
        parts = {name: PairHeader.load(folder / name).pairs for name in ("train", "test")}
        return {"path": folder, "pairs": sum(parts.values()), **parts}
    path = collect_pairs(CollectPairs(**given, **({} if pairs is None else {"pairs": pairs})))
    header = PairHeader.load(path)
    size = sum((path / shard.file).stat().st_size for shard in header.shards)
    reasons = ", ".join(f"{count} {reason}" for reason, count in header.rejected.items())
    _say(
        f"{header.pairs} pairs, {header.acceptance:.0%} of {header.tries} tries accepted"
        f" (rejected: {reasons or 'none'}), {size / 1e6:.1f} MB"
    )
    counts = {"pairs": header.pairs, "tries": header.tries, "rejected": header.rejected}
    return {"path": path, **counts}


def _say(text: str) -> None:
    Console(stderr=True).print(text, soft_wrap=True, highlight=False)


@dataclass(frozen=True, kw_only=True)
class ExportOriginal:
    """Writes data in CausalMBRL's layout, which its trainer and its evaluation read."""

    data: Annotated[str, tyro.conf.Positional]
    """What `interverse collect` wrote for blocks or chemistry, or an id, such as
    blocks/observed-3-v1, whose published split is made first."""
    out: Path
    """The file to write; a transition takes 60 kB."""
    split: str | None = None
    """Of an id: train (by default), valid, test, test-v1, zero-shot, few-shot-v1, ..."""
    episodes: int | None = None
    """Of an id: only the first so many of the split's."""
    option: OptionWords = ()
    json: AsJson = False


@dataclass(frozen=True, kw_only=True)
class ImportOriginal:
    """Reads a file of CausalMBRL's layout into a data set that `load_dataset` opens."""

    source: Annotated[Path, tyro.conf.Positional]
    """The original's file."""
    id: str
    """The world it was made in, such as blocks/observed-3-v1: the file does not name it."""
    out: Path
    """The data set to write, FILE.h5."""
    order: Literal["number", "text"] = "number"
    """Episodes by their number, or as the original's reader has them: 0, 1, 10, 100, ..."""
    option: OptionWords = ()
    json: AsJson = False


def export_original(config: ExportOriginal) -> None:
    """Writes the file and says where it is."""
    data: Any = load_dataset(
        config.data,
        config.split,
        episodes=config.episodes,
        progress=True,
        **parse_pairs(config.option),
    )
    if not isinstance(data, Dataset):
        told = f"{config.data} is no play of blocks or chemistry"
        raise InvalidValueError(told, allowed="their data and ids")
    made = {"path": write_original(data, config.out), "episodes": len(data)}
    tell(config, made, f"{made['path']}: {made['episodes']} episodes")


def import_original(config: ImportOriginal) -> None:
    """Reads the file and says where the data set is."""
    options = parse_pairs(config.option)
    path = read_original(config.source, config.out, id=config.id, order=config.order, **options)
    made = {"path": path, "episodes": len(load_dataset(str(path)))}
    tell(config, made, f"{path}: {made['episodes']} episodes")
