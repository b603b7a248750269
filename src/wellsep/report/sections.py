"""What a page consists of: words for the template, data for the script."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from wellsep.report.choosing import Chosen
from wellsep.report.figures import Curves, RankingTable, Steps, TruthPanels


@dataclass(frozen=True, eq=False)
class Page:
    """A page before it is written.

    Attributes
    ----------
    kind : {"ranking", "choice of k"}
    title : str
    lead : the answer as pieces ("name" or "text", words)
    sure : sentences on how sure it is
    facts : (number, words) pairs
    table : RankingTable
    paragraphs : the explanation
    missing : section → the sentence why it is not there
    data : what the script draws
    """

    kind: str
    title: str
    lead: tuple[tuple[str, str], ...]
    sure: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]
    table: RankingTable
    paragraphs: tuple[str, ...] = ()
    steps: Steps | None = None
    curves: Curves | None = None
    chosen: Chosen | None = None
    worst: Mapping[str, list[Any]] | None = None
    truth: TruthPanels | None = None
    missing: Mapping[str, str] = field(default_factory=dict)
    data: Mapping[str, Any] = field(default_factory=dict)


def table_payload(table: RankingTable) -> dict[str, Any]:
    """The table as the page's script reads it."""
    return {
        "rows": table.rows,
        "same": dict(table.same),
        "columns": [
            {
                "key": c.key,
                "label": c.label,
                "kind": c.kind,
                "direction": c.direction,
                "values": c.values,
            }
            for c in table.columns
        ],
    }


def panels_payload(truth: TruthPanels) -> dict[str, Any]:
    """Rankings against the truth as the page's script reads them."""
    return {
        "names": truth.names,
        "partitions": truth.partitions,
        "scores": truth.scores,
        "external": dict(truth.external),
        "table": dict(truth.table),
        "picks": truth.picks,
    }
