"""What a person reads. Modules: `listing` and `stack` (light verbs), `export` (Markdown, CSV, JSON), `check` (replay
and judge again), `progress`, `verdict_text` and `describe` (a run). Nothing is imported here: a listing must not pay
for the records.
"""
