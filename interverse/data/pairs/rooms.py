"""Rooms as a source of pairs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

from interverse.core.errors import InvalidValueError, explain
from interverse.envs.build import build_world
from interverse.worlds import WORLDS
from interverse.worlds.rooms import CLASS_NAMES, VERBS, Pair, Rejection, generate_pairs

if TYPE_CHECKING:
    from interverse.data.pairs.collect import CollectPairs


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RoomsSource:
    """The pairs of a world of rooms, by house."""

    id: str
    seed: int
    options: Mapping[str, Any]
    depth: bool
    graph: str

    @classmethod
    def of(cls, config: CollectPairs) -> RoomsSource:
        """Returns the source that a configuration names; a bad id or option raises now."""
        if not config.id.startswith("rooms/") and config.id in WORLDS:
            raise InvalidValueError(
                explain(
                    f"{config.id} has no pairs", allowed="ids of rooms", fix="See: interverse list"
                )
            )
        world = build_world(config.id, 1, config.options)
        graph = world.graph.to_json()
        world.close()
        return cls(
            id=config.id,
            seed=config.seed,
            options=dict(config.options),
            depth=config.depth,
            graph=graph,
        )

    @property
    def verbs(self) -> tuple[str, ...]:
        """Names of the actions."""
        return tuple(verb.name for verb in VERBS)

    @property
    def nouns(self) -> tuple[str, ...]:
        """Names of the object classes."""
        return CLASS_NAMES

    def __call__(self, house: int) -> Iterable[Pair | Rejection]:
        """Returns what a house gives."""
        return generate_pairs(self.id, self.seed, house, options=self.options, depth=self.depth)
