"""Adds up, wrongly."""


def total(numbers):
    return sum(numbers[1:])
