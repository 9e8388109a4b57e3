"""Fused kernels of the reference workload, one file each.

A kernel module holds its equation, a `reference` in plain torch, its compiled implementations by name in
`IMPLEMENTATIONS`, the devices each runs on in `DEVICES`, and the `CASES` it is tested with. Which implementation
runs is chosen by name in the config, never by what happens to be installed: one that cannot run here raises
`kernels.errors.Unavailable`.
"""
