"""The tables and findings of REPORT.md, written from the rows of results.csv."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from experiments.bookkeeping import markdown, replace_between
from experiments.local_connectivity.findings import LEVEL, sentences
from experiments.local_connectivity.measure import LCDS, MEASURES
from experiments.local_connectivity.protocols import GRID, NEIGHBOURS
from experiments.local_connectivity.summary import (
    ALL,
    RELATIVE,
    TESTED,
    Row,
    published,
    select,
)

SHOWN_T = 5
TABLES = {"table2": ("avg_lcd", "max_lcd"), "table3": ("silhouette", "purity")}


def fill(text: str, results: Sequence[Row]) -> str:
    """The report with its blocks between markers written anew; a guide may hold some of them."""
    for marker, block in blocks(results).items():
        if f"<!-- {marker} -->" in text:
            text = replace_between(text, marker, block)
    return text


def blocks(results: Sequence[Row]) -> dict[str, str]:
    """Marker -> what stands there."""
    return {
        "findings": "\n".join(f"* {sentence}" for sentence in sentences(results)),
        "table2": as_published(results, "table2"),
        "table3": as_published(results, "table3"),
        "grid": grid(results),
        "further": further(results),
        "across": across(results),
        "prototypes": prototypes(results),
        "small": small(results),
        "control": control(results),
        "weights": weights(results),
        "made": made(results),
        "measured": measured(results),
    }


def prose(text: str) -> str:
    """What is left of a report without its generated blocks."""
    return re.sub(r"<!-- (\w+) -->.*?<!-- /\1 -->", "", text, flags=re.DOTALL)


def paper_sets(results: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(row["set"] for row in results if row["part"] == "preferred"))


def further_sets(results: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(row["set"] for row in results if row["part"] == "further"))


def one(results: Sequence[Row], **wanted: Any) -> Row:
    """The only row that holds the wanted values."""
    (row,) = select(results, **wanted)
    return row


def _protocol(results: Sequence[Row], part: str, title: str) -> str:
    row = select(results, part=part, set=title)[0]
    return f"{row['scaling']}, {row['starts']}"


def _sure(row: Row, shown: str) -> str:
    return f"**{shown}**" if row["p_holm"] is not None and row["p_holm"] < LEVEL else shown


def as_published(results: Sequence[Row], table: str) -> str:
    """Table 2 or 3 in the paper's layout: the paper, our protocol, the nearest protocol."""
    pair = TABLES[table]
    columns = {"set": "", "method": "", "who": ""} | {
        f"{measure}{t}": f"{MEASURES[measure]} t={t}" for measure in pair for t in NEIGHBOURS
    }
    told, rows = published(), []
    for title in paper_sets(results):
        for method in ("KM", "LOFKM", "change"):
            for part, who in _columns(results, title).items():
                row: dict[str, Any] = {"set": title, "method": method, "who": who}
                for measure in pair:
                    for t in NEIGHBOURS:
                        row[f"{measure}{t}"] = (
                            _told(told, title, method, measure, t)
                            if part == "paper"
                            else _ours(results, part, title, method, measure, t)
                        )
                rows.append(row)
    return markdown(rows, columns)


def _columns(results: Sequence[Row], title: str) -> dict[str, str]:
    """Whose values are shown: the nearest protocol only where it is not the preferred one."""
    ours, best = (_protocol(results, part, title) for part in ("preferred", "nearest"))
    if ours == best:
        return {"paper": "paper", "preferred": f"preferred and nearest ({ours})"}
    return {"paper": "paper", "preferred": f"preferred ({ours})", "nearest": f"nearest ({best})"}


def _told(told: Any, title: str, method: str, measure: str, t: int) -> str:
    def value(name: str) -> float:
        values = told[title, name, measure]
        return values[t] if t in values else values[None]

    if method != "change":
        return f"{value(method):.2f}"
    return _change(measure, _difference(measure, value("KM"), value("LOFKM")))


def _difference(measure: str, km: float, lof: float) -> float:
    return 100.0 * (lof / km - 1.0) if measure in RELATIVE else lof - km


def _change(measure: str, value: float) -> str:
    return f"{value:+.1f} %" if measure in RELATIVE else f"{value:+.3f}"


def _ours(results: Any, part: str, title: str, method: str, measure: str, t: int) -> str:
    row = one(results, part=part, set=title, method=method, measure=measure, t=t)
    if method == "change":
        return _sure(row, _change(measure, row["value"]))
    return f"{row['value']:.2f}"


def grid(results: Sequence[Row]) -> str:
    """Distance of every protocol from the paper; the nearest of each column in bold."""
    found = select(results, part="grid")
    titles = [*paper_sets(results), ALL]
    value = {(row["set"], row["scaling"], row["starts"]): row["value"] for row in found}
    best = {title: min(v for key, v in value.items() if key[0] == title) for title in titles}
    rows = []
    for protocol in GRID:
        row = {"scaling": protocol.scaling, "starts": protocol.starts}
        for title in titles:
            here = value[(title, *protocol)]
            row[title] = f"**{here:.3f}**" if here == best[title] else f"{here:.3f}"
        rows.append(row)
    return markdown(rows, ["scaling", "starts", *titles])


def further(results: Sequence[Row]) -> str:
    """What LOFKM changes on each set at one t, in bold where sure."""
    columns = {"set": "set", "scaling": "scaling", "km": "KM AvgLCD", "lof": "LOFKM AvgLCD"} | {
        measure: MEASURES[measure] for measure in TESTED
    }
    rows = []
    for part, titles in (("preferred", paper_sets(results)), ("further", further_sets(results))):
        for title in titles:
            at = select(results, part=part, set=title, t=SHOWN_T)
            row: dict[str, Any] = {"set": title, "scaling": at[0]["scaling"]}
            for key, method in (("km", "KM"), ("lof", "LOFKM")):
                row[key] = f"{one(at, method=method, measure='avg_lcd')['value']:.2f}"
            for measure in TESTED:
                change = one(at, method="change", measure=measure)
                row[measure] = _sure(change, _change(measure, change["value"]))
            rows.append(row)
    return markdown(rows, columns)


def across(results: Sequence[Row]) -> str:
    """Over the further sets: median change, sets better and worse, adjusted p."""
    rows = []
    for measure in TESTED:
        row: dict[str, Any] = {"measure": MEASURES[measure]}
        for t in NEIGHBOURS:
            found = one(results, part="across", measure=measure, t=t)
            shown = _sure(found, _change(measure, found["value"]))
            row[f"t{t}"] = f"{shown} ({found['better']}:{found['worse']}, p {_p(found['p_holm'])})"
        rows.append(row)
    return markdown(rows, {"measure": ""} | {f"t{t}": f"t={t}" for t in NEIGHBOURS})


def _p(value: float) -> str:
    return f"{value:.2f}" if value >= 0.01 else f"{value:.4f}"


def _about_means(results: Sequence[Row], part: str, title: str, t: int, measure: str) -> float:
    at = select(results, part=part, set=title, t=t)
    km = one(at, method="KM", measure=measure)["value"]
    lof = one(at, method="LOFKM", measure=f"{measure}_means")["value"]
    return _difference(measure, km, lof)


def prototypes(results: Sequence[Row]) -> str:
    """Change of AvgLCD about LOFKM's prototypes, and about the means of the same clusters."""
    rows = []
    for part, titles in (("preferred", paper_sets(results)), ("further", further_sets(results))):
        for title in titles:
            row: dict[str, Any] = {"set": title}
            for t in NEIGHBOURS:
                own = one(results, part=part, set=title, t=t, method="change", measure="avg_lcd")[
                    "value"
                ]
                means = _about_means(results, part, title, t, "avg_lcd")
                row[f"t{t}"] = f"{_change('avg_lcd', own)} / {_change('avg_lcd', means)}"
            rows.append(row)
    return markdown(rows, {"set": ""} | {f"t{t}": f"t={t}: own / means" for t in NEIGHBOURS})


def control(results: Sequence[Row]) -> str:
    """Avila with and without the one object: clusters of at most t, and what LOFKM changes."""
    rows = []
    titles = [("preferred", paper_sets(results)[-1])]
    titles += [("control", row["set"]) for row in select(results, part="control")[:1]]
    for part, title in titles:
        for t in NEIGHBOURS:
            at = select(results, part=part, set=title, t=t)
            row: dict[str, Any] = {"set": title, "t": t, "n": at[0]["n"]}
            for method in ("KM", "LOFKM"):
                row[method] = f"{one(at, method=method, measure='small')['value']:.2f}"
            for measure in LCDS:
                change = one(at, method="change", measure=measure)
                row[measure] = _sure(change, _change(measure, change["value"]))
            rows.append(row)
    columns = {"set": "", "t": "t", "n": "starts"}
    columns |= {m: f"{m}: clusters of at most t" for m in ("KM", "LOFKM")}
    return markdown(rows, columns | {measure: MEASURES[measure] for measure in LCDS})


def small(results: Sequence[Row]) -> str:
    """Clusters of at most t members, mean over the starts, KM / LOFKM, where there are any."""
    rows = []
    for part, titles in (
        ("preferred", paper_sets(results)),
        ("nearest", paper_sets(results)),
        ("further", further_sets(results)),
    ):
        for title in titles:
            row: dict[str, Any] = {"set": f"{title} ({_protocol(results, part, title)})"}
            counts = []
            for t in NEIGHBOURS:
                at = select(results, part=part, set=title, t=t, measure="small")
                both = [one(at, method=method)["value"] for method in ("KM", "LOFKM")]
                counts += both
                row[f"t{t}"] = f"{both[0]:.2f} / {both[1]:.2f}"
            clusters = one(
                results, part=part, set=title, t=SHOWN_T, measure="clusters", method="LOFKM"
            )
            row["clusters"] = f"{clusters['value']:.1f}"
            if max(counts) > 0 and (part != "nearest" or row not in rows):
                rows.append(row)
    return markdown(
        rows, {"set": "", "clusters": "clusters"} | {f"t{t}": f"t={t}" for t in NEIGHBOURS}
    )


def weights(results: Sequence[Row]) -> str:
    """Sizes, and how far the weights are from those of k-means, which are 1."""
    found = select(results, part="weights")
    rows = []
    for title in dict.fromkeys(row["set"] for row in found):
        here = select(found, set=title)
        row: dict[str, Any] = {"set": title}
        for measure in ("objects", "features", "classes"):
            row[measure] = str(select(here, measure=measure)[0]["value"])
        for t in NEIGHBOURS:
            largest = one(here, measure="largest_weight", t=t)["value"]
            above = one(here, measure="above_two", t=t)["value"]
            row[f"t{t}"] = f"{largest:.1f}; {100 * above:.1f} %"
        rows.append(row)
    columns = {"set": "", "objects": "objects", "features": "features", "classes": "classes"}
    return markdown(rows, columns | {f"t{t}": f"t={t}: largest; share above 2" for t in NEIGHBOURS})


def made(results: Sequence[Row]) -> str:
    """Which commits and seeds made the numbers."""
    commits = sorted({word for row in results if row["commit"] for word in row["commit"].split()})
    seeds = {part: select(results, part=part)[0]["seeds"] for part in ("preferred", "further")}
    return (
        f"Commit {', '.join(commits)}; seeds {seeds['preferred']} for the paper's sets, "
        f"{seeds['further']} for the further ones."
    )


def measured(results: Sequence[Row]) -> str:
    """Tables 2 and 3 under our protocol in brief, the paper's values in brackets."""
    told, rows = published(), []
    for title in paper_sets(results):
        for method in ("KM", "LOFKM"):
            row = {"row": f"{title} {method}"}
            for measure in (*TABLES["table2"], *TABLES["table3"]):
                ours = [_ours(results, "preferred", title, method, measure, t) for t in NEIGHBOURS]
                theirs = [_told(told, title, method, measure, t) for t in NEIGHBOURS]
                row[measure] = f"{_joined(ours)} ({_joined(theirs)})"
            rows.append(row)
    columns = {"row": ""} | {
        measure: f"{MEASURES[measure]} t={_joined(NEIGHBOURS)}"
        for measure in (*TABLES["table2"], *TABLES["table3"])
    }
    return markdown(rows, columns)


def _joined(values: Sequence[Any]) -> str:
    return "/".join(map(str, values if len(set(values)) > 1 else values[:1]))
