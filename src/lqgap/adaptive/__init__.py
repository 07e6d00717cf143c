"""Online control of an unknown plant."""
