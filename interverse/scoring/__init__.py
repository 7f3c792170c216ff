"""Scores of world models, ours and anyone's: what two methods, `encode` and `rollout`, know.

- `outside`: the two methods of a model, called so that no answer can depend on the order of rows.
- `shares`: shares with their intervals; ranking and in-scene hits, alike in every world.
- `grid`, `planning`: scores in blocks and chemistry; `states`: in worlds with continuous actions.
- `world_model`: `interverse.score_world_model`.
"""
