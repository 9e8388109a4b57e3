"""Several ranks under torchrun, with gloo on the CPU."""

from __future__ import annotations

import pytest

from campaign.errors import TrialFailed
from tests.own.conftest import alive, ask

RANKS = """
import os, sys, time
import torch, torch.distributed as distributed
import campaign

distributed.init_process_group("gloo")
rank = distributed.get_rank()
torch.manual_seed(0)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(16, 16))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step, x_BD in enumerate(campaign.steps([torch.full((4, 16), 1.0 + rank)], tokens=4)):
    if rank == 1 and "DIE" in os.environ and step == int(os.environ["DIE"]):
        os.kill(os.getpid(), 9) if os.environ.get("HOW") == "killed" else os._exit(3)
    if rank == 1:
        time.sleep(0.05)
        held = torch.ones(2_000_000)
    optimizer.zero_grad()
    loss = model(x_BD).pow(2).mean()
    loss.backward()
    optimizer.step()
    campaign.record(loss=torch.tensor(float(rank)), model=model)
"""
TORCHRUN = {"command": "torchrun --nproc_per_node=2 train.py", "environment": {"OMP_NUM_THREADS": "1"}}


def test_two_ranks_take_one_step_together(trial):
    process = trial(RANKS, **TORCHRUN)
    assert (process.built["facts"]["ranks"], process.built["facts"]["threads"]) == (2, 2)
    block = ask(process, "block", steps=4)
    assert (block["steps"], block["tokens"]) == (4, 2 * 4 * 4)
    assert block["wall_seconds"] >= 4 * 0.05, "rank 1 sleeps 50 ms a step, and the step is the slowest rank's"
    assert block["loss"] == 0.5, "the mean of the ranks' losses, 0 and 1"
    assert ask(process, "memory")["live_peak_bytes"] >= 8_000_000, "rank 1 holds 2,000,000 floats, rank 0 none"
    assert ask(process, "exit") == {"ok": True}


@pytest.mark.parametrize("how", [pytest.param("exits", marks=pytest.mark.slow), "killed"])
def test_a_rank_that_dies_is_a_failed_trial_and_no_hang(trial, how):
    process = trial(RANKS, **{**TORCHRUN, "environment": {"DIE": "3", "HOW": how, "OMP_NUM_THREADS": "1"}})
    with pytest.raises(TrialFailed, match=r"rank \d of 2 ended during 'block'") as failed:
        ask(process, "block", steps=20)
    assert failed.value.reason in ("crashed", "killed")
    process.kill()
    assert not alive(str(process.log.parent)), "nothing of it is left"
