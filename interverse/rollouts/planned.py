"""Trained policy that plans: TD-MPC2's latent model, searched at every decision.

A policy of two plain files plans from each picture alone, with one fixed set of dice, so its action
does not depend on other worlds or on what it did before.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, final

from interverse.core.errors import check_number, missing_extra
from interverse.rollouts.pixels import PicturePolicy
from interverse.rollouts.plan_model import PlanModel, PlanOptions, PlanSizes
from interverse.rollouts.policy_card import check_bounds

try:
    import torch
except ImportError as error:
    raise missing_extra("torch", "torch") from error

PLANNED_FORMAT = "interverse-planned-policy-1"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedCard:
    """Sizes, settings and bounds of a planning policy.

    Attributes:
        observation: shape (C, S, S) of what the world gives, uint8.
        sizes: the fields of `PlanSizes`; `options`: those of `PlanOptions`.
        discount: of a decision.
        low: least action; `high`: greatest.
        trained: what trained it, for the record.
    """

    observation: list[int]
    sizes: dict[str, int]
    options: dict[str, float]
    discount: float
    low: list[float]
    high: list[float]
    trained: dict[str, Any]
    format: str = PLANNED_FORMAT


@final
class PlannedPolicy(PicturePolicy):
    """The searched action of two files, as a callable on batched pictures."""

    card: PlannedCard
    card_type, file_format = PlannedCard, PLANNED_FORMAT
    at_once = 1  # sums of a batch have other last digits, and a search may then choose otherwise

    def __init__(self, card: PlannedCard, weights: dict[str, Any]) -> None:
        super().__init__(card, weights)
        check_number(card.discount, "discount", most=1.0)
        options: Any = card.options
        dice = torch.Generator().manual_seed(0)
        self._model = PlanModel(
            PlanSizes(**card.sizes), PlanOptions(**options), card.discount, dice
        )
        self._model.requires_grad_(False)
        self._noise = self._model.noise(1, torch.Generator().manual_seed(0))

    def forward(self, pictures: Any) -> Any:
        """Returns actions for a tensor of pictures."""
        noise = [part.to(pictures.device) for part in self._noise]
        size = self.card.sizes["side"]
        start = (pictures.shape[-1] - size) // 2
        seen = pictures[..., start : start + size, start : start + size]
        self._model.load_state_dict(self.weights, assign=True)
        action = self._model(seen, *noise)
        low, high = (torch.tensor(b, device=seen.device) for b in (self.card.low, self.card.high))
        return torch.clamp(low + 0.5 * (action + 1.0) * (high - low), low, high)

    def check(self) -> None:
        """Raises ValueError unless card and weights are one network."""
        if self.card.format != PLANNED_FORMAT:
            raise ValueError(f"format {self.card.format!r}")
        check_bounds(self.card.low, self.card.high)
        sizes = self._model.sizes
        if len(self.card.low) != sizes.actions or not isinstance(self.card.trained, dict):
            raise ValueError(f"bounds of {len(self.card.low)} numbers for {sizes.actions} actions")
        shape = self.card.observation
        if len(shape) != 3 or shape[0] != sizes.channels or min(shape[1:]) < sizes.side:
            raise ValueError(f"observation {shape!r}")
        try:
            self._model.load_state_dict(self.weights, assign=True)
        except RuntimeError as error:
            raise ValueError(str(error).splitlines()[-1].strip()) from error


def planned_policy(
    model: PlanModel,
    observation: list[int],
    bounds: tuple[list[float], list[float]],
    trained: dict[str, Any],
) -> PlannedPolicy:
    """Returns a model as a policy with weights of its own."""
    names = PlanOptions.__dataclass_fields__
    card = PlannedCard(
        observation=observation,
        sizes=asdict(model.sizes),
        options={name: getattr(model.options, name) for name in names},
        discount=model.discount,
        low=bounds[0],
        high=bounds[1],
        trained=trained,
    )
    held = model.state_dict()
    return PlannedPolicy(card, {name: v.detach().cpu().clone() for name, v in held.items()})
