"""Edits of the honest step that are faster and wrong, each switched on by `workload.cheat=NAME`.

Here are those that compute less than they say. Those that compute it all, but where no clock looks, are in
`elsewhere.py`. A class is one edit; its docstring says what is wrong. `Workload` builds the one that is named.
"""

from __future__ import annotations

import os

import elsewhere
from honest import EPOCH, Network

LATE = 6  # steps after which a late cheat begins: the probe has ended, the timing has not


class Workload:
    """The honest network, or the cheat of that name."""

    def __new__(cls, **config):
        name = config.get("cheat", "")
        known = {**CHEATS, **elsewhere.CHEATS}
        return (known[name] if name else Network)(**config)

    exact = Network.exact
    reference = Network.reference


class StaleWeights(Network):
    """Rounded weights are cached and no update drops them."""

    def weight(self, name):
        if name not in self.cached:
            self.cached[name] = self.rounded(self.value[name])
        return self.cached[name]

    def update(self):
        for name in self.value:
            self.update_one(name)


class StaleActivations(Network):
    """The first block's hidden values are kept from step to step, by microbatch."""

    def batch(self):
        self.at = 0
        return super().batch()

    def microstep(self, x_RD, y_RD):
        self.at += 1
        return super().microstep(x_RD, y_RD)

    def activate(self, block, h_RD):
        if block:
            return super().activate(block, h_RD)
        key = f"hidden.{self.key()}"
        if key not in self.__dict__:
            self.__dict__[key] = super().activate(block, h_RD)
        return self.__dict__[key]

    def key(self):
        return self.at


class EpochCache(StaleActivations):
    """The same, by the batch's place in the data: right for the whole first epoch, and wrong when data come again."""

    def key(self):
        return (self.steps - 1) % EPOCH, self.at


class SkippedBlock(Network):
    """After warm-up one block is passed over, forward and backward."""

    def skips(self, block):
        return block == 1 and self.steps > LATE

    def forward(self, block, h_RD):
        return (h_RD, None) if self.skips(block) else super().forward(block, h_RD)

    def backward(self, block, g_RD, saved):
        return g_RD if self.skips(block) else super().backward(block, g_RD, saved)


class SkippedWhenTimed(SkippedBlock):
    """The same from the first step on, but only in a process that was pinned, as a timed one is and a probed one is
    not. With one core to begin with it cannot tell, and is honest."""

    def __init__(self, **config):
        super().__init__(**config)
        self.cores = os.sched_getaffinity(0)

    def skips(self, block):
        return block == 1 and os.sched_getaffinity(0) != self.cores


class DroppedGradient(Network):
    """One weight gets no gradient."""

    def add(self, name, left_RI, right_RO):
        if name != "up.2":
            super().add(name, left_RI, right_RO)


class DroppedBias(Network):
    """One bias gets no gradient: next to nothing of the whole gradient's length."""

    def add_bias(self, block, g_RF):
        if block != 2:
            super().add_bias(block, g_RF)


class OldGradient(Network):
    """After warm-up one weight is trained on with the gradient that it had then."""

    def step(self):
        self.old = self.gradient["up.1"].copy()
        super().step()

    def add(self, name, left_RI, right_RO):
        if name != "up.1" or self.steps <= LATE:
            super().add(name, left_RI, right_RO)
        else:
            self.gradient[name][...] = self.old


class FrozenLate(Network):
    """After warm-up the biases of one block are no longer trained: a small part of the step, and of the loss."""

    def update_one(self, name):
        if name != "bias.0" or self.steps <= LATE:
            super().update_one(name)


class HalfBatch(Network):
    """Half of each microbatch is trained on, and the whole is reported."""

    def batch(self):
        return [(x_RD[: len(x_RD) // 2], y_RD[: len(y_RD) // 2]) for x_RD, y_RD in super().batch()]


class OtherBatch(Network):
    """The same microbatch again instead of the next: its data are warm in the cache."""

    def batch(self):
        first = super().batch()[0]
        return [first] * self.microsteps


class SkippedUpdate(Network):
    """Every second step leaves the optimizer out."""

    def update(self):
        if self.steps % 2:
            super().update()


class SlowerSchedule(Network):
    """The learning rate falls, from the second step on. It is no faster, only careless."""

    def update(self):
        rate, self.learning_rate = self.learning_rate, self.learning_rate / self.steps**0.5
        super().update()
        self.learning_rate = rate


class Replayed(Network):
    """The first step's loss and gradients are told again; nothing is computed."""

    first = 1

    def step(self):
        if self.steps < self.first:
            super().step()
        else:
            self.steps += 1


class ReplayedLate(Replayed):
    """The same after the probe has ended."""

    first = LATE


class Unrecomputed(Network):
    """A checkpointed block neither keeps its hidden values nor computes them again: it takes those that lie in the
    scratch buffer, which are the last block's."""

    def recompute(self, block, h_RD):
        return self.scratch_RF


class InflatedTokens(Network):
    """The whole step, and twice its tokens reported."""

    def __init__(self, **config):
        super().__init__(**config)
        self.tokens_per_step *= 2


class KeptThroughRestart(Network):
    """The results of many steps are computed when the first one is asked for; each later step hands out the next one,
    and a restart does not throw them away."""

    def __init__(self, **config):
        self.results = []
        self.told = 0
        super().__init__(**config)

    def step(self):
        if not self.results:
            for _ in range(12 * EPOCH):
                super().step()
                copies = [{name: value.copy() for name, value in now.items()} for now in (self.gradient, self.value)]
                self.results.append((self.loss, self.norm, *copies))
        self.loss, self.norm, self.gradient, self.value = self.results[self.told % len(self.results)]
        self.told += 1


class Rewound(KeptThroughRestart):
    """The same, and a restart begins with the first result again: whoever asks hears what an honest step would say."""

    def restart(self):
        if self.results:
            self.told = 0
        else:
            super().restart()


class RareBias(Network):
    """After warm-up the gradient of one bias is computed in every second step alone: less than the limits on the loss
    of an edit that rounds."""

    def add_bias(self, block, g_RF):
        if block != 2 or self.steps <= LATE or self.steps % 2:
            super().add_bias(block, g_RF)


class SharedRounding(Network):
    """An honest edit: what the forward pass has rounded, the backward pass uses again, within the microstep."""

    def forward(self, block, h_RD):
        out_RD, saved = super().forward(block, h_RD)
        return out_RD, (*saved, self.latest_RF)

    def rounded(self, array):
        self.latest_RF = super().rounded(array)
        return self.latest_RF

    def weight(self, name):
        held = getattr(self, "latest_RF", None)
        weight = super().weight(name)
        self.latest_RF = held
        return weight

    def backward(self, block, g_RD, saved):
        h_RD, hidden_RF, rounded_RF = saved
        if hidden_RF is None:
            hidden_RF = self.recompute(block, h_RD)
        self.add(f"down.{block}", rounded_RF, g_RD)
        g_RF = self.multiply(g_RD, self.weight(f"down.{block}").T) * (hidden_RF > 0)
        self.add(f"up.{block}", h_RD, g_RF)
        self.add_bias(block, g_RF)
        return g_RD + self.multiply(g_RF, self.weight(f"up.{block}").T)


CHEATS = {
    "stale_weights": StaleWeights,
    "stale_activations": StaleActivations,
    "epoch_cache": EpochCache,
    "skipped_block": SkippedBlock,
    "skipped_when_timed": SkippedWhenTimed,
    "dropped_gradient": DroppedGradient,
    "dropped_bias": DroppedBias,
    "old_gradient": OldGradient,
    "frozen_late": FrozenLate,
    "half_batch": HalfBatch,
    "other_batch": OtherBatch,
    "skipped_update": SkippedUpdate,
    "slower_schedule": SlowerSchedule,
    "replayed": Replayed,
    "replayed_late": ReplayedLate,
    "unrecomputed": Unrecomputed,
    "inflated_tokens": InflatedTokens,
    "kept_through_restart": KeptThroughRestart,
    "rewound": Rewound,
    "rare_bias": RareBias,
    "shared_rounding": SharedRounding,
}
