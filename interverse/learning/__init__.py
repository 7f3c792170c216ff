"""Learning at the scale of a GPU: thousands of TriFinger worlds, PPO in Torch, on one device.

`interverse.learning.train.train_on_device` is what `interverse train --device cuda` runs. PPO is our
own small one: at this scale the whole of it is the two hundred lines of `ppo.py`, it needs no
wrapper around the worlds, and it learned 335,000 to 497,000 steps a second on one H200.
"""
