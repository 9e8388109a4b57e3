"""Arguments of `campaign.measure` under which two short rounds end a comparison, whatever the day."""

SETTINGS = {
    "looks": (2,),
    "contention_limit": 1000.0,
    "steal_limit": 1.0,
    "warmup_tolerance": 10.0,
    "warmup_minimum_steps": 2,
    "warmup_window_steps": 2,
    "warmup_limit_steps": 4,
    "block_minimum_seconds": 0.0,
}
# With two threads, a hand-over may take far more beside a block of a few microseconds than a busy day makes of it.
QUICK = {"protocol": "quick", "pairs": 2, "threads": 2, "settings": SETTINGS, "progress": False}
