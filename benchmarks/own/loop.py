"""A loop of one's own, with the two lines of way 2; watched by its output it is way 1. `--accelerate`: Accelerate's."""

from __future__ import annotations

import torch
from model import CLIP, SEQUENCES, TOKENS, flags, loader, model, optimizer, step

import campaign

parser = flags()
parser.add_argument("--accelerate", action="store_true")
given = parser.parse_args()
net = model(given)
adamw = optimizer(given, net)
batches = loader(given)
if given.accelerate:
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True, mixed_precision="bf16" if given.bf16 else "no")
    prepared, adamw, batches = accelerator.prepare(net, adamw, batches)
else:
    prepared = net
if given.compile:
    prepared = torch.compile(prepared)

number = 0
while number < given.steps:
    for batch in campaign.steps(batches, tokens=SEQUENCES * TOKENS):
        if given.accelerate:
            adamw.zero_grad()
            loss = prepared(**batch).loss
            accelerator.backward(loss)
            norm = accelerator.clip_grad_norm_(net.parameters(), CLIP)
            adamw.step()
            loss = loss.detach()
        else:
            loss, norm = step(given, prepared, adamw, batch)
        campaign.record(loss=loss, gradient_norm=norm, model=net)
        number += 1
        print(f"step {number} loss {loss.item():.6f}")
        if number == given.steps:
            break
