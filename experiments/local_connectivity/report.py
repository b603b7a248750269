"""The tables of the report."""


def fill(text, results):
    return text
