"""The figures of the report."""


def draw(results, out): ...
