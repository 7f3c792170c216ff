"""The figure of prediction against knowledge: a mark per run, a panel per score."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

KNOWLEDGE_FILE = "images/world_models_causes.svg"
_ACROSS = "H@1 after 1"


class KnowledgeRow(Protocol):
    """The scores of one run, as far as the figure reads them."""

    @property
    def world(self) -> str:
        """The world's id."""
        ...

    @property
    def model(self) -> str:
        """The model's name."""
        ...

    def value(self, name: str) -> float:
        """Returns a score by its short name."""
        ...


def write_knowledge_figure(page: Path, rows: Sequence[KnowledgeRow], names: Sequence[str]) -> None:
    """Draws the runs beside a page."""
    from interverse.reports.plots import style

    path = page.parent / KNOWLEDGE_FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    style.save(_drawn(rows, names), path)


def _drawn(rows: Sequence[KnowledgeRow], names: Sequence[str]) -> Any:
    """Returns a panel per score: filled marks are runs in blocks, empty ones in chemistry."""
    from interverse.reports.plots import style

    models = sorted({row.model for row in rows})

    @style.styled
    def drawn() -> Any:
        canvas = style.new_figure(3.9)
        axes = canvas.subplots(1, len(names))
        for panel, name in zip(axes, names, strict=True):
            for index, model in enumerate(models):
                own, look = [row for row in rows if row.model == model], style.look(index)
                faces = [look.color if r.world.startswith("blocks/") else "none" for r in own]
                panel.scatter(
                    [row.value(_ACROSS) for row in own],
                    [row.value(name) for row in own],
                    s=20,
                    marker=look.marker,
                    facecolors=faces,
                    edgecolors=look.color,
                    linewidths=0.9,
                )
                panel.scatter([], [], marker=look.marker, color=look.color, label=model)
            panel.set_xlabel(_ACROSS)
            panel.set_title(name, fontsize=9.5)
            panel.set_ylim(bottom=0)
        style.legend_above(canvas, axes[0], len(models))
        return canvas

    return drawn()
