"""One job: everything that a run needs to know of what the person asked for."""

from __future__ import annotations

import json as jsonlib
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from campaign.config.compose import Composer, searchpath_override
from campaign.config.edits import LAUNCHED, parse, stacked
from campaign.config.parameters import spelled
from campaign.config.workload import same_shape
from campaign.records import Arm, Edit, Hypothesis, Protocol


@dataclass(frozen=True)
class Job:
    """A hypothesis to be decided on a workload under a protocol. `overrides` are the person's, in Hydra's spelling.

    `workload` is the chosen option's name, `device` where it runs, `tracking` is `mlflow`, `none` or a server's
    address. `parameters` are the hypothesis's own, by name. `typed` is the whole command where it was no run's.
    """

    root: Path
    campaign: str
    workload: str
    device: str
    hypothesis: Hypothesis
    protocol: Protocol
    tracking: str
    lease_wait_seconds: float
    overrides: tuple[str, ...]
    json: bool
    composer: Composer = field(repr=False, compare=False)
    parameters: dict[str, Any] = field(default_factory=dict)
    typed: str = ""

    @property
    def command(self) -> str:
        """The command that asks for this job again, with every parameter of the hypothesis as it was: a default that
        changes later does not change what the command means."""
        if self.typed:
            return self.typed
        typed = {parse(text).key_or_group for text in self.overrides}
        name = self.hypothesis.name
        pinned = [f"{name}.{key}={spelled(value)}" for key, value in self.parameters.items()]
        left = [text for text in pinned if text.split("=", 1)[0] not in typed]
        words = [*searchpath_override(self.composer.searchpath), *self.overrides, *left]
        return shlex.join(["python", "-m", "campaign", *words])

    def arm(self, role: str, name: str, edits: Sequence[tuple[str, Edit]]) -> Arm:
        """The root under the person's overrides with `edits` applied in order, resolved; each edit comes with the name
        of its hypothesis.

        Raises BadInput naming both hypotheses when two edits set the same key, UnknownName when one sets a key that the
        workload does not have.
        """
        where = f"arm {role} ({name})"
        overrides, environment = stacked(edits, where=where)
        root = self.composer.compose(self.overrides).values["workload"]
        config = self.composer.compose([*self.overrides, *overrides], where=where).values["workload"]
        same_shape(config, root, where=where)
        target = config.pop("_target_")
        if target.startswith(LAUNCHED) and (own := config.get("environment")):
            # The command's variables are set last, over those of the trial's process: an edit wins over them too.
            config["environment"] = own | {key: environment[key] for key in own if key in environment}
        # Through JSON once, so that an arm read back from the ledger has the same hash.
        return Arm(role, name, target, jsonlib.loads(jsonlib.dumps(config)), environment)
