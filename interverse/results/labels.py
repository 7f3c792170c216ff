"""Names of a variable's components and of metrics, as readers see them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interverse.metrics import metric_facts

_PARTS = {
    "color": ("red", "green", "blue", "alpha"),
    "cylindrical_position": ("radius", "angle", "height"),
}
_PLAIN_PARTS = ("x", "y", "z", "w")


def component_names(variable: str, width: int) -> list[str]:
    """Returns one name per component: the variable's own if it is a single number.

    >>> component_names("block_0/mass", 1), component_names("block_0/size", 3)[2]
    (['block_0/mass'], 'block_0/size z')
    """
    if width == 1:
        return [variable]
    parts = _PARTS.get(split_step(variable)[0].rsplit("/", 1)[-1], _PLAIN_PARTS)
    if width > len(parts):
        parts = tuple(map(str, range(width)))
    return [f"{variable} {part}" for part in parts[:width]]


def split_step(variable: str) -> tuple[str, str]:
    """Returns a variable's own name and at which step it was set, if the column says so.

    >>> split_step("box/mass@20"), split_step("box/mass")
    (('box/mass', '20'), ('box/mass', ''))
    """
    name, _, step = variable.partition("@")
    return name, step


def metric_label(metric: str) -> str:
    """Returns a metric's name as an axis label or a table's head.

    >>> metric_label("last20_fractional_success"), metric_label("time_to_success")
    ('Fraction, last 20 steps', 'time to success')
    """
    return metric_facts(metric).get("label") or metric.replace("_", " ")


def is_share(metric: str) -> bool:
    """Returns whether a metric runs from 0 to 1.

    >>> is_share("success"), is_share("time_to_success")
    (True, False)
    """
    if metric == "success" or metric.endswith("fractional_success"):
        return True
    return metric_facts(metric).get("range") == (0.0, 1.0)


def less_is_better(metric: str, provenance: Mapping[str, Any]) -> bool:
    """Returns whether less of a metric is better, as its row says or a user's own `Metric`.

    >>> less_is_better("time_to_success", {}), less_is_better("effort", {})
    (True, False)
    """
    own = provenance.get("better", {}).get(metric)
    return (own or metric_facts(metric).get("better")) == "less"
