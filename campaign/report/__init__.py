"""What a person reads.

Light verbs, on plain rows: `listing`, `stack`, `whole` (root against head and its parts), `filters`. One decision:
`evidence_text`, `verdict_text`, `describe`, `cells`. A campaign: `reported` (decisions and findings gathered), `page`
(its sections: `declared`, `decided`, `studied`, `limits`), which `markdown` and `html` write; `flat` (CSV, Parquet);
`export` has them all. `check` (with `line_order` and `recomputed`) judges again. Runs: `progress`, `sweep`,
`finding_text` and their like. Nothing is imported here: a listing must not pay for the records.
"""
