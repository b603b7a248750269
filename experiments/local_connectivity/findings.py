"""The findings of REPORT.md as sentences that take every number from results.csv."""

from __future__ import annotations

from collections.abc import Sequence

from experiments.local_connectivity.measure import MEASURES
from experiments.local_connectivity.protocols import NEIGHBOURS
from experiments.local_connectivity.summary import Row, published, select

LEVEL = 0.05
T = "/".join(map(str, NEIGHBOURS))


def sentences(results: Sequence[Row]) -> list[str]:
    """What was measured, in the order of the report's questions."""
    titles = list(dict.fromkeys(row["set"] for row in select(results, part="preferred")))
    (without,) = dict.fromkeys(row["set"] for row in select(results, part="control"))
    last = titles[-1]
    return [
        *(_set(results, title) for title in titles),
        f"{last}, clusters of at most t objects, k-means against LOFKM, t = {T}: "
        f"{_values(results, 'preferred', last, 'KM', 'small', 2)} against "
        f"{_values(results, 'preferred', last, 'LOFKM', 'small', 2)}. Clusters of more than t "
        f"objects alone: AvgLCD {_changes(results, 'preferred', last, 'large_lcd')}.",
        f"{without}: AvgLCD {_changes(results, 'control', without, 'avg_lcd')}; clusters of at "
        f"most t objects {_values(results, 'control', without, 'KM', 'small', 2)} against "
        f"{_values(results, 'control', without, 'LOFKM', 'small', 2)}.",
        *(_over(results, measure) for measure in ("avg_lcd", "max_lcd", "object_lcd", "sse")),
        *(_sure(results, t) for t in NEIGHBOURS),
        _prototypes(results, titles),
    ]


def _at(results: Sequence[Row], **wanted: str) -> list[float]:
    return [row["value"] for t in NEIGHBOURS for row in select(results, t=t, **wanted)]


def _values(
    results: Sequence[Row], part: str, title: str, method: str, measure: str, digits: int
) -> str:
    found = _at(results, part=part, set=title, method=method, measure=measure)
    return "/".join(f"{value:.{digits}f}" for value in found)


def _changes(results: Sequence[Row], part: str, title: str, measure: str) -> str:
    found = _at(results, part=part, set=title, method="change", measure=measure)
    return "/".join(f"{value:+.1f}" for value in found) + " %"


def _set(results: Sequence[Row], title: str) -> str:
    told = published()
    km, lof = (told[title, method, "avg_lcd"] for method in ("KM", "LOFKM"))
    paper = "/".join(f"{100 * (lof[t] / km[t] - 1):+.1f}" for t in NEIGHBOURS)
    purity = told[title, "LOFKM", "purity"][5] - told[title, "KM", "purity"][None]
    (ours,) = select(results, part="preferred", set=title, t=5, method="change", measure="purity")
    away = {part: _distance(results, part, title) for part in ("preferred", "nearest")}
    return (
        f"{title}: AvgLCD of LOFKM against k-means, t = {T}: paper {paper} %, ours "
        f"{_changes(results, 'preferred', title, 'avg_lcd')}, nearest protocol "
        f"{_changes(results, 'nearest', title, 'avg_lcd')}; purity at t = 5: paper {purity:+.2f}, "
        f"ours {ours['value']:+.3f}. Mean distance from the paper's values: ours "
        f"{100 * away['preferred']:.1f} %, nearest {100 * away['nearest']:.1f} %."
    )


def _distance(results: Sequence[Row], part: str, title: str) -> float:
    used = select(results, part=part, set=title)[0]
    (row,) = select(results, part="grid", set=title, scaling=used["scaling"], starts=used["starts"])
    return row["value"]


def _over(results: Sequence[Row], measure: str) -> str:
    rows = [row for t in NEIGHBOURS for row in select(results, part="across", measure=measure, t=t)]
    medians = "/".join(f"{row['value']:+.2f}" for row in rows)
    wins = ", ".join(f"{row['better']}:{row['worse']}" for row in rows)
    ps = ", ".join(f"{row['p_holm']:.2g}" for row in rows)
    return (
        f"{rows[0]['n']} further sets, {MEASURES[measure]}, t = {T}: median change {medians} %, "
        f"sets better:worse {wins}, p (Holm) {ps}."
    )


def _sure(results: Sequence[Row], t: int) -> str:
    rows = select(results, part="further", t=t, method="change", measure="avg_lcd")
    sure = sorted((row["value"], row["set"]) for row in rows if row["p_holm"] < LEVEL)
    listed = ", ".join(f"{title} {value:+.1f} %" for value, title in sure) or "none"
    return f"Further sets whose AvgLCD surely changes at t = {t}: {listed}."


def _prototypes(results: Sequence[Row], titles: Sequence[str]) -> str:
    parts = []
    for title in titles:
        km, means = (
            _at(results, part="preferred", set=title, method=method, measure=measure)
            for method, measure in (("KM", "avg_lcd"), ("LOFKM", "avg_lcd_means"))
        )
        moved = "/".join(f"{100 * (b / a - 1):+.1f}" for a, b in zip(km, means, strict=True))
        own = _changes(results, "preferred", title, "avg_lcd")
        parts.append(f"{title} {own} about LOFKM's prototypes, {moved} % about the means")
    return f"AvgLCD of the same LOFKM clusters against k-means, t = {T}: {'; '.join(parts)}."
