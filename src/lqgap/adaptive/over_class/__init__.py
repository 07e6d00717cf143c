"""Rivals of LQG-VTR over a finite class."""
