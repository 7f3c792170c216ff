"""The causal core: variables, spaces, graphs, interventions, mechanisms. NumPy only."""

from interverse.scm.graph import CausalGraph
from interverse.scm.intervention import (
    Do,
    Intervention,
    Joint,
    Outcome,
    Replace,
    Shift,
    as_intervention,
    intervention_from_json,
)
from interverse.scm.model import SCM, Mechanism
from interverse.scm.space import Angle, Box, Choice, Integers, Space, UnitQuaternion, boolean, hull
from interverse.scm.variable import Binding, Variable, lookup, refuse_bindings, table, with_defaults

__all__ = [
    "SCM",
    "Angle",
    "Binding",
    "Box",
    "CausalGraph",
    "Choice",
    "Do",
    "Integers",
    "Intervention",
    "Joint",
    "Mechanism",
    "Outcome",
    "Replace",
    "Shift",
    "Space",
    "UnitQuaternion",
    "Variable",
    "as_intervention",
    "boolean",
    "hull",
    "intervention_from_json",
    "lookup",
    "refuse_bindings",
    "table",
    "with_defaults",
]
