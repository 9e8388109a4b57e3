"""Cheats that compute all of the step, but where the timed block does not look: after `step` has returned, before the
clock starts, in another thread or process, or only when somebody asks for the result.
"""

from __future__ import annotations

import gc
import mmap
import os
import queue
import sys
import threading
import time
from functools import partial

import numpy
from honest import Network


class Threaded(Network):
    """The update is given to a thread and `step` returns; the next step waits for it. Between two blocks it is free.
    `joins` is what an honest edit would do: wait before the step ends."""

    joins = False

    def __init__(self, **config):
        self.jobs: queue.Queue = queue.Queue()
        self.thread = threading.Thread(target=self.serve, daemon=True)
        super().__init__(**config)
        self.thread.start()

    def serve(self):
        while True:
            self.jobs.get()()
            self.jobs.task_done()

    def step(self):
        self.jobs.join()
        super().step()
        if self.joins:
            self.jobs.join()

    def update(self):
        self.jobs.put(super().update)

    def last_step(self):
        self.jobs.join()
        return super().last_step()

    def gradients(self):
        self.jobs.join()
        return super().gradients()

    def restart(self):
        self.jobs.join()
        super().restart()


class Joined(Threaded):
    """The honest twin."""

    joins = True


class Early(Threaded):
    """The whole step is given to a thread, as to a device, and `synchronize` does not wait for it."""

    def step(self):
        self.jobs.put(self.whole_step)

    def whole_step(self):
        Network.step(self)

    def update(self):
        Network.update(self)


class Synchronized(Early):
    """The honest twin: `synchronize` waits."""

    def synchronize(self):
        self.jobs.join()


class OwedStep(Network):
    """`step` only remembers that a step is owed; who asks for a result pays them all, long after the clock."""

    owed = 0

    def step(self):
        self.owed += 1

    def pay(self):
        while self.owed:
            self.owed -= 1
            super().step()

    def last_step(self):
        self.pay()
        return super().last_step()

    def gradients(self):
        self.pay()
        return super().gradients()

    def restart(self):
        self.owed = 0
        super().restart()


class PaidBeforeTheClock(OwedStep):
    """The debt is paid in a `synchronize` that no step went before: the one ahead of each block's clock."""

    stepped = False

    def step(self):
        super().step()
        self.stepped = True

    def synchronize(self):
        if not self.stepped:
            self.pay()
        self.stepped = False


class WaitedBeforeTheClock(Network):
    """The waiting that a step owes (its `pause`: for data, for a device) is done in the `synchronize` ahead of the
    clock. It takes no CPU time."""

    owed = 0.0
    stepped = False

    def step(self):
        super().step()
        self.stepped = True

    def wait(self, seconds):
        self.owed += seconds

    def synchronize(self):
        if not self.stepped:
            super().wait(self.owed)
            self.owed = 0.0
        self.stepped = False


class PaidByTheCollector(OwedStep):
    """The debt is paid when garbage is collected, which the harness does after each block."""

    def __init__(self, **config):
        super().__init__(**config)
        gc.callbacks.append(self.collecting)

    def collecting(self, phase, info):
        if phase == "start":
            self.pay()

    def close(self):
        gc.callbacks.remove(self.collecting)


class Forked(Network):
    """A child process holds the model and steps while nobody looks; this one's CPU clock does not see it. `step`
    takes the result of the step that the child has finished meanwhile and asks for the next one."""

    FIELDS = 2

    def __init__(self, **config):
        super().__init__(**config)
        size = sum(value.size for value in self.gradient.values()) * self.number.itemsize
        self.shared = mmap.mmap(-1, 8 * self.FIELDS + size)
        self.numbers = numpy.frombuffer(self.shared, numpy.float64, self.FIELDS)
        self.flat = numpy.frombuffer(self.shared, self.number, offset=8 * self.FIELDS)
        asked, self.ask = os.pipe()
        self.answer, answered = os.pipe()
        if self.forked():
            self.serve(asked, answered)
        os.close(asked)
        os.close(answered)
        os.write(self.ask, b"s")

    def forked(self):
        """Whether this is the child."""
        self.child = os.fork()
        return self.child == 0

    def serve(self, asked, answered):
        os.close(self.ask)
        while word := os.read(asked, 1):
            if word == b"r":
                Network.restart(self)
            Network.step(self)
            self.numbers[:] = self.loss, self.norm
            numpy.concatenate([value.ravel() for value in self.gradient.values()], out=self.flat)
            os.write(answered, b"d")
        os._exit(0)

    def step(self):
        self.steps += 1
        os.read(self.answer, 1)
        self.loss, self.norm = map(float, self.numbers)
        self.latest = self.flat.copy()
        os.write(self.ask, b"s")

    def gradients(self):
        sizes = numpy.cumsum([value.size for value in self.gradient.values()])[:-1]
        return dict(zip(self.gradient, numpy.split(self.latest, sizes), strict=True))

    def restart(self):
        super().restart()
        if hasattr(self, "ask"):
            os.read(self.answer, 1)
            os.write(self.ask, b"r")

    def close(self):
        os.close(self.ask)
        os.waitpid(self.child, 0)


class Orphaned(Forked):
    """The same with the child in a session of its own and its parent gone: it is nobody's descendant."""

    def forked(self):
        self.child = os.fork()
        if self.child == 0:
            os.setsid()
            if os.fork():
                os._exit(0)
            return True
        return False


class Disturbing(Network):
    """The whole step; and while the other arm steps, a thread of this one spins on the core that both share."""

    def __init__(self, **config):
        super().__init__(**config)
        self.idle = threading.Event()
        threading.Thread(target=self.spin, daemon=True).start()

    def spin(self):
        while self.idle.wait():
            sum(range(1000))

    def step(self):
        self.idle.clear()
        super().step()
        self.idle.set()


class SlowClock(Network):
    """The process's own clocks are replaced by ones at half speed, in the harness too, wherever it has bound them."""

    def __init__(self, **config):
        super().__init__(**config)
        for name in ("perf_counter_ns", "process_time_ns"):
            slow = partial(half, getattr(time, name))
            for module in (time, *(sys.modules[found] for found in list(sys.modules) if found.startswith("campaign"))):
                if hasattr(module, name):
                    setattr(module, name, slow)


def half(clock):
    return clock() // 2


CHEATS = {
    "threaded": Threaded,
    "joined": Joined,
    "early": Early,
    "synchronized": Synchronized,
    "owed_step": OwedStep,
    "paid_before_the_clock": PaidBeforeTheClock,
    "waited_before_the_clock": WaitedBeforeTheClock,
    "paid_by_the_collector": PaidByTheCollector,
    "forked": Forked,
    "orphaned": Orphaned,
    "disturbing": Disturbing,
    "slow_clock": SlowClock,
}
