"""Learning at the scale of a GPU: thousands of TriFinger worlds, PPO in Torch, on one device.

`train.train_on_device` is what `interverse train --device cuda` runs. PPO is our own small one: at
this scale it is the few hundred lines of `ppo.py`, needs no wrapper around the worlds, and learned
776,000 steps a second on one H200 (`results/bench_h200.json`).
"""
