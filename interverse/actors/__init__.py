"""Actors and curricula: they choose interventions in training."""

from interverse.core.registry import Entry, Registry

ACTORS = Registry(
    "actor",
    {
        "adaptive": Entry("interverse.actors.adaptive:Adaptive"),
        "adversarial": Entry("interverse.actors.adversarial:Adversarial"),
        "agent": Entry("interverse.actors.agent:AgentDriven"),
        "everything": Entry("interverse.actors.uniform:Everything"),
        "goals": Entry("interverse.actors.goals:Goals"),
        "interpolation": Entry("interverse.actors.interpolation:Interpolation"),
        "joints": Entry("interverse.actors.joints:Joints"),
        "physical_properties": Entry("interverse.actors.physics:PhysicalProperties"),
        "regional": Entry("interverse.actors.uniform:Regional"),
        "rigid_pose": Entry("interverse.actors.pose:RigidPose"),
        "uniform": Entry("interverse.actors.uniform:Uniform"),
        "visual": Entry("interverse.actors.visual:Visual"),
    },
)
