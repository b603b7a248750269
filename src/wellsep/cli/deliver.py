"""Where the results of a command go: checked before the work, written after it."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import wellsep as ws
from wellsep._files.arrays import to_json
from wellsep.cli.printing import print_error
from wellsep.tables.writing import write_array, write_table

TABLES = (".csv", ".tsv", ".parquet")
PAGES = (".html", ".htm")


@dataclass(frozen=True)
class Outputs:
    """What ``--json``, ``--save``, ``--output`` and ``--report`` of a command ask for.

    ``labels`` says that ``--output`` takes labels, which may be an npy file, not a table. The page
    shows the command line of ``context``.
    """

    as_json: bool = False
    save: Path | None = None
    output: Path | None = None
    report: Path | None = None
    labels: bool = False
    context: Any = None

    def check(self, *inputs: Path | str | None) -> None:
        """Refuse what cannot be written, or would be written over an input."""
        check_target("output", self.output, (*TABLES, ".npy") if self.labels else TABLES, *inputs)
        check_target("report", self.report, PAGES, *inputs)
        check_target("save", self.save, None, *inputs)

    def deliver(
        self,
        result: Any,
        show: Callable[[Any], None],
        *,
        findings: Mapping[str, Any] | None = None,
        table: Mapping[str, Any] | None = None,
        **page: Any,
    ) -> None:
        """Print the result, then write it: whatever happens to the files, the answer is not lost.

        ``findings`` are printed with ``--json``, by default ``result.to_dict()``; ``table`` is
        written to ``--output``, by default ``result.columns()``; ``page`` are options of
        ``render_report``.
        """
        if self.as_json:
            print_json(result.to_dict() if findings is None else findings)
        else:
            show(result)
        sys.stdout.flush()
        if self.save is not None:
            result.save(self.save)
            wrote(self.save)
        if self.output is not None:
            write_columns(self.output, result.columns() if table is None else table)
        if self.report is not None:
            ws.render_report(result, self.report, command=command_of(self.context), **page)
            wrote(self.report)


def print_json(value: Any) -> None:
    """Print one JSON document."""
    plain = to_json(value, nan="null", other=str)
    text = json.dumps(plain, indent=2, ensure_ascii=False)
    # JSON escapes the usual control characters; the others could turn text round as well.
    shown = "".join(c if c.isprintable() or c == "\n" else f"\\u{ord(c):04x}" for c in text)
    sys.stdout.write(shown + "\n")


def label_columns(labels: Any, ids: Any) -> dict[str, Any]:
    """The columns of a file of labels."""
    return ({} if ids is None else {"id": ids}) | {"label": labels}


def write_columns(path: Path, columns: Mapping[str, Any]) -> None:
    """Write columns as a table; to an npy file the last one."""
    if path.suffix == ".npy":
        write_array(path, list(columns.values())[-1])
    else:
        write_table(
            path, {name: getattr(v, "tolist", lambda v=v: v)() for name, v in columns.items()}
        )
    wrote(path)


def wrote(target: Path) -> None:
    """Say on stderr what was written."""
    print_error(f"wrote {target}")


def check_target(
    option: str, target: Path | None, endings: Sequence[str] | None, *inputs: Path | str | None
) -> None:
    """Refuse a file that cannot be written or that is an input; without endings, such a folder.

    No folder is made.
    """
    if target is None:
        return
    kind = "folder" if endings is None else "file"
    parent = target.absolute().parent
    if not parent.is_dir():
        raise ValueError(
            f"{option} must lie in a folder that exists, got {target}; make the folder first."
        )
    for path in inputs if endings is not None or target.is_dir() else ():
        if path is not None and target.exists() and Path(path).exists() and target.samefile(path):
            raise ValueError(
                f"{option} must be another file than the input, got {target}, which would be lost; "
                "choose another name."
            )
    if endings is not None and target.suffix not in endings:
        raise ValueError(f"{option} must end in {' or '.join(endings)}, got {target.name!r}.")
    if target.exists() and target.is_dir() != (kind == "folder"):
        other = "folder" if target.is_dir() else "file"
        raise ValueError(f"{option} must be a {kind}, got the {other} {target}.")
    if not target.exists() and not os.access(parent, os.W_OK):
        raise ValueError(f"{option} must lie in a folder that can be written, got {target}.")
    if target.exists() and not os.access(target, os.W_OK):
        raise ValueError(f"{option} must be a {kind} that can be written, got {target}.")


def command_of(context: Any) -> str:
    """The command line of a context again: its arguments, and every option that was given."""
    words = context.command_path.split()
    for parameter in context.command.params:
        value = context.params.get(parameter.name)
        source = context.get_parameter_source(parameter.name)
        if value is None or source is None or source.name != "COMMANDLINE":
            continue
        if parameter.param_type_name == "argument":
            words += map(str, value if isinstance(value, list | tuple) else [value])
        elif isinstance(value, bool):
            off = parameter.secondary_opts or parameter.opts
            words.append((parameter.opts if value else off)[0])
        else:
            for one in value if isinstance(value, list | tuple) else [value]:
                words += [max(parameter.opts, key=len), str(one)]
    return shlex.join(words)
