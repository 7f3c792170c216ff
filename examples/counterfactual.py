"""Imagine: one episode of chemistry, and what it would have been without one causal edge.

python examples/counterfactual.py
"""

import interverse as iv

COLORS = [f"object_{i}/color" for i in range(5)]


def main() -> None:
    """Cuts one edge of a chain and shows which objects, and when, would have differed."""
    fact = iv.rollout("chemistry/chain-v1", "random", seed=0, max_steps=30)
    twin = iv.counterfactual(fact, do={"edge_1_2": 0}, at=10)
    for name in COLORS:
        differs = fact.values[name] != twin.values[name]
        print(name, "".join(".#"[int(d)] for d in differs))
    print("# marks a step in which the object has another colour than it had in fact.")
    print("Objects 0 and 1 stand before the cut edge: they cannot differ.")

    same = iv.counterfactual(fact, do={})
    print("without a change, the twin is the fact:", same.fingerprint == fact.fingerprint)


if __name__ == "__main__":
    main()
