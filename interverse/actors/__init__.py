"""Actors and curricula: they choose interventions in training."""

from interverse.core.registry import Entry, Registry

ACTORS = Registry(
    "actor",
    {
        "adaptive": Entry("interverse.actors.adaptive:Adaptive"),
        "adversarial": Entry("interverse.actors.adaptive:Adversarial"),
        "agent": Entry("interverse.actors.adaptive:AgentDriven"),
        "everything": Entry("interverse.actors.uniform:Everything"),
        "goals": Entry("interverse.actors.uniform:Goals"),
        "interpolation": Entry("interverse.actors.adaptive:Interpolation"),
        "joints": Entry("interverse.actors.uniform:Joints"),
        "physical_properties": Entry("interverse.actors.uniform:PhysicalProperties"),
        "regional": Entry("interverse.actors.uniform:Regional"),
        "rigid_pose": Entry("interverse.actors.uniform:RigidPose"),
        "uniform": Entry("interverse.actors.uniform:Uniform"),
        "visual": Entry("interverse.actors.uniform:Visual"),
    },
)
