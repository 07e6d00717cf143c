"""A question, a configuration, a record.

In reading order: what a study says (`study`, `parsing`, `toml`), its plants (`family`, `plants`) and methods
(`methods`, a file for each, and `adaptation`), what is found (`record`, `results`), what is kept
(`provenance`, `store`), how it is computed (`units`, `work`, `pipeline`, `assembly`), and the two jobs
(`transfer`; `sweep` with `workers`).
"""
