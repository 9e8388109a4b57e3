"""What is written down: frozen dataclasses with units in their names, and their JSON form.

Read in this order: `plan` (what was declared before the first timing), `measured` (what the machine did),
`decision` (what was concluded). `codec` turns each into JSON and back.
"""

from campaign.records.codec import from_json, to_json
from campaign.records.decision import (
    ACCEPT,
    INCONCLUSIVE,
    INVALID,
    REJECT,
    UNAVAILABLE,
    VERDICTS,
    Decision,
    Effect,
    Floor,
    MemoryChange,
    Need,
    Verdict,
)
from campaign.records.measured import (
    TRIAL_FAILURES,
    ArmParity,
    ArmProbe,
    Block,
    Evidence,
    Memory,
    ParameterError,
    ParityMeasure,
    Probe,
    Round,
    Surroundings,
    Trial,
)
from campaign.records.plan import (
    RULES,
    Arm,
    Edit,
    ExpectedChange,
    Hypothesis,
    ParityClaim,
    Plan,
    Protocol,
)

SCHEMA = 1
KINDS = ("campaign", "registered", "probe", "trial", "blocks", "decision", "stack", "note", "revoked", "static")

__all__ = [
    "ACCEPT",
    "INCONCLUSIVE",
    "INVALID",
    "KINDS",
    "REJECT",
    "RULES",
    "SCHEMA",
    "TRIAL_FAILURES",
    "UNAVAILABLE",
    "VERDICTS",
    "Arm",
    "ArmParity",
    "ArmProbe",
    "Block",
    "Decision",
    "Edit",
    "Effect",
    "Evidence",
    "ExpectedChange",
    "Floor",
    "Hypothesis",
    "Memory",
    "MemoryChange",
    "Need",
    "ParameterError",
    "ParityClaim",
    "ParityMeasure",
    "Plan",
    "Probe",
    "Protocol",
    "Round",
    "Surroundings",
    "Trial",
    "Verdict",
    "from_json",
    "to_json",
]
