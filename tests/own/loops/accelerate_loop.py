"""A small network trained in a loop of one's own with Accelerate, three batches a step. `--told FILE`: write the losses
of the steps."""

from __future__ import annotations

import argparse
import json

import torch
from accelerate import Accelerator

import campaign

parser = argparse.ArgumentParser()
parser.add_argument("--told")
given = parser.parse_args()
torch.set_num_threads(1)
torch.manual_seed(0)
# Eight batches an epoch: two steps of three, then one of two, at which Accelerate synchronises because the data end.
tokens = torch.randint(0, 64, (32, 16), generator=torch.Generator().manual_seed(1))
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(tokens), batch_size=4)
net = torch.nn.Sequential(torch.nn.Embedding(64, 32), torch.nn.Tanh(), torch.nn.Linear(32, 64))
accelerator = Accelerator(cpu=True, gradient_accumulation_steps=3)
net, optimizer, loader = accelerator.prepare(net, torch.optim.AdamW(net.parameters(), lr=1e-2), loader)
losses: list[float] = []
for _ in range(2):
    parts: list[torch.Tensor] = []
    for (batch,) in campaign.steps(loader, tokens=lambda batch: batch[0].numel(), every=3):
        with accelerator.accumulate(net):
            if not parts:
                optimizer.zero_grad()
            logits = net(batch[:, :-1])
            loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
            accelerator.backward(loss)
            parts.append(loss.detach())
            campaign.record(loss=sum(parts) / 3, model=net)
            if accelerator.sync_gradients:
                optimizer.step()
                losses.append((sum(parts) / 3).item())
                parts = []
if given.told:
    with open(given.told, "w") as file:
        json.dump(losses, file)
