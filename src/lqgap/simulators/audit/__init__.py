"""The audit of a class: figures of every member, a common norm, the checks, and what they found."""
