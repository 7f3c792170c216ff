"""Who chooses interventions in training: actors and curricula."""

from interverse.registry import Entry, Registry

ACTORS = Registry(
    "actor",
    {
        "adaptive": Entry("interverse.actors.adaptive:Adaptive"),
        "adversarial": Entry("interverse.actors.adversarial:Adversarial"),
        "agent": Entry("interverse.actors.agent:AgentDriven"),
        "everything": Entry("interverse.actors.uniform:Everything"),
        "goals": Entry("interverse.actors.goals:Goals"),
        "interpolation": Entry("interverse.actors.interpolation:Interpolation"),
        "uniform": Entry("interverse.actors.uniform:Uniform"),
    },
)
