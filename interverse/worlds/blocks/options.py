"""Options of a world of blocks: the setting, the mode, the colours, the form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal, final

from interverse.core.errors import check_name, check_whole
from interverse.core.type_checks import Seed, validated, whole
from interverse.worlds.grid import CELLS
from interverse.worlds.palette import QUALITATIVE, SEQUENTIAL
from interverse.worlds.world import WorldOptions

Setting = Literal["observed", "unobserved", "fixed_unobserved"]

# Observed: half the width of an intensity's range, in units of the grid's spacing; None: anywhere.
SPREADS = {
    "Train": 1 / 8,
    "Test-v1": 1 / 4,
    "Test-v2": 1 / 3,
    "Test-v3": 1 / 2,
    "ZeroShot": None,
    "ZeroShotShape": 1 / 8,
}
LEGACY_SPREADS = {**SPREADS, "ZeroShotShape": 1.0}
# Unobserved: how many colours never seen in training join the nine.
NEW_COLORS = {"Train": 0, "ZeroShotShape": 0, "FewShot-v1": 1, "FewShot-v2": 2, "FewShot-v3": 3}

MODES: dict[str, tuple[str, ...]] = {
    "observed": tuple(SPREADS),
    "unobserved": tuple(NEW_COLORS),
    "fixed_unobserved": tuple(name for name in NEW_COLORS if name != "ZeroShotShape"),
}
_COLORMAPS = {
    "observed": tuple(SEQUENTIAL),
    "unobserved": tuple(QUALITATIVE),
    "fixed_unobserved": tuple(QUALITATIVE),
}


@final
@dataclass(frozen=True, kw_only=True)
@validated
class BlocksOptions(WorldOptions):
    """Options of a world of blocks."""

    objects: int = 3
    """How many blocks; the published worlds have 3, 4 and 5."""
    setting: Setting = "observed"
    """Whether colour tells weight: by its intensity (observed), by a hue one must have learned
    (unobserved), or by a hue with shapes that never change (fixed_unobserved)."""
    mode: str = "Train"
    """Which distribution colours and shapes come from. Observed: Train, Test-v1, Test-v2, Test-v3,
    ZeroShot, ZeroShotShape; unobserved: Train, ZeroShotShape, FewShot-v1, -v2, -v3."""
    cmap: str | None = None
    """Colours: Blues, Reds, Greens (observed) or Sets, Pastels; None takes Blues or Sets."""
    plain: bool = False
    """The form without a target: four moves a block (no stay), and every reward is 0."""
    target_steps: Annotated[int, whole(10_000, least=0)] = 10
    """How many random actions lead from the start to the target."""
    palette_seed: Seed = 0
    """Which new colours a FewShot mode adds: the same seed, the same colours in every episode."""
    legacy: bool = False
    """As the original had it. ZeroShotShape: intensities may cross, so that they no longer order
    the weights. FewShot: new colours come last among the blocks, whatever their weight."""

    def __post_init__(self) -> None:
        fix = f"of setting {self.setting!r}"
        check_name("mode", self.mode, MODES[self.setting], fix=f"These are the modes {fix}")
        if self.cmap is not None:
            colors = _COLORMAPS[self.setting]
            check_name("cmap", self.cmap, colors, fix=f"These are the colours {fix}")
        check_whole(self.objects, "objects", self.most_objects)

    @property
    def observed(self) -> bool:
        """Whether a colour's intensity tells the weight."""
        return self.setting == "observed"

    @property
    def colormap(self) -> str:
        """The colours in use."""
        return _COLORMAPS[self.setting][0] if self.cmap is None else self.cmap

    @property
    def spread(self) -> float | None:
        """Half the width of an intensity's range in grid spacings; None: anywhere."""
        return (LEGACY_SPREADS if self.legacy else SPREADS)[self.mode]

    @property
    def new_colors(self) -> int:
        """How many colours never seen in training join the nine."""
        return NEW_COLORS[self.mode]

    @property
    def random_shapes(self) -> int:
        """How many shapes a block's is drawn from; 0: block i has shape i for good."""
        if self.setting == "fixed_unobserved":
            return 0
        return 6 if self.mode == "ZeroShotShape" else 3

    @property
    def most_objects(self) -> int:
        """As many blocks as there are cells, and (unobserved) distinct colours."""
        if self.observed:
            return CELLS
        return len(QUALITATIVE[self.colormap]) + self.new_colors
