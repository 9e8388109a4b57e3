"""Can a training run end in the days that there are, on the devices that there are? Pure arithmetic over plain numbers.

Read in this order: `found` (the records), `budget` (tokens, days, devices), `utilisation` (model FLOPs against a
device's peak), `recorded` (what a ledger's lines say of rates and ceilings), `verdict` (all of it in one answer).
`quantities` reads what a person types, `peaks` the table of devices.
"""
