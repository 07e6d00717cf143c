"""A question, a configuration, a record: studies, the store of finished work, transfer and sweeps."""
