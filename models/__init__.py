"""The reference workload: a hybrid prenorm transformer that trains on bytes of the Python standard library.

Reading order, one screenful or two each: config, ops, text, quantize, products, linear, weights, recompute, precision,
mixer, attention, mlp, block, model, replay, workload. Nothing here imports the harness; the harness imports
`models.workload.ReferenceWorkload` by its dotted path.

Tensor names end in their shape. B sequences, T tokens, D width, H heads, K key width, V value width, F feed-forward
width, O vocabulary, E channels of a fused projection, N chunks, C tokens of a chunk, P taps of the convolution,
M rows of a matrix product (B*T flattened), S microsteps of a step.
"""
