"""Two processes of torchrun's, whose gradients DistributedDataParallel sums by gloo; with the two lines of way 2."""

from __future__ import annotations

import torch
from model import SEQUENCES, TOKENS, Pages, flags, loader, model, optimizer, step
from torch.utils.data.distributed import DistributedSampler

import campaign

given = flags().parse_args()
torch.distributed.init_process_group("gloo")
net = torch.nn.parallel.DistributedDataParallel(model(given))
adamw = optimizer(given, net)
prepared = torch.compile(net) if given.compile else net
batches = loader(given, sampler=DistributedSampler(Pages(), seed=1))
for number, batch in enumerate(campaign.steps(batches, tokens=SEQUENCES * TOKENS)):
    if number == given.steps:
        break
    loss, norm = step(given, prepared, adamw, batch)
    campaign.record(loss=loss, gradient_norm=norm, model=net)
torch.distributed.destroy_process_group()
