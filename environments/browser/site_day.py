"""The day on which every session of these sites takes place: a Monday."""

__all__ = ["TODAY"]

TODAY = "2026-05-04"
