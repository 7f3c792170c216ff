"""trifinger/*-v1: the CausalWorld benchmark, nine tasks for a robot of three fingers."""
