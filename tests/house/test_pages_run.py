"""The code and the commands of a page run in their order in one folder, as a reader types them."""

from __future__ import annotations

import doctest
import re
import shlex
import warnings
from importlib.util import find_spec

import pytest
from golden import ROOT

import wellsep
from wellsep.cli.main import main

MADE = {"_build", "generated", "auto_examples"}
PAGES = [
    path
    for path in [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
    if not MADE & set(path.parts)
]
# A comment before a block says why it is not run, or which packages it needs.
BLOCK = re.compile(
    r"(?:^<!-- (?P<rule>not run|needs): (?P<what>[^>]*?) -->\n)?"
    r"^```(?P<language>python|pycon|sh)\n(?P<code>.*?)^```",
    re.M | re.S,
)
# the line that begins a block of examples → the optional package that the block needs
OPTIONAL = {
    "from wellsep.deep import": "torch",
    "from wellsep import plot": "matplotlib",
    "import dask": "dask",
    "import pandas": "pandas",
    ".to_frame()": "pandas",
}
# What a shell runs that is not wellsep: it is shown, and not run here.
OTHERS = ("pip", "python", "make", "dask", "git", "source", "cd", "iconv", "#")


def name_of(path):
    return str(path.relative_to(ROOT))


def blocks_of(path):
    """(line of the page, language, code, packages) of each block that is to be run."""
    text = path.read_text(encoding="utf-8")
    for match in BLOCK.finditer(text):
        if match["rule"] == "not run":
            continue
        needed = set((match["what"] or "").replace(",", " ").split())
        needed |= {name for line, name in OPTIONAL.items() if line in match["code"]}
        line = text[: match.start("code")].count("\n") + 1
        yield line, match["language"], match["code"], needed


# The README has tests of its own, in test_one_answer and test_documentation.
WITH_BLOCKS = [path for path in PAGES if path.name != "README.md" and any(blocks_of(path))]


def run_examples(code, namespace, place):
    test = doctest.DocTestParser().get_doctest(code, namespace, *place)
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    result = doctest.DocTestRunner(optionflags=flags, verbose=False).run(test, clear_globs=False)
    namespace.update(test.globs)
    assert result.failed == 0


def run_commands(code, place):
    for line in code.replace("\\\n", " ").splitlines():
        if not line.strip() or line.startswith(OTHERS):
            continue
        words = shlex.split(line.split(" > ")[0], comments=True)
        assert words[0] == "wellsep", (place, line)
        # 3: no structure beyond one cluster, which is an answer.
        assert main(words[1:]) in (0, 3), (place, line)


@pytest.mark.parametrize("path", WITH_BLOCKS, ids=name_of)
def test_the_blocks_of_a_page_run_one_after_the_other(path, tmp_path, monkeypatch):
    monkeypatch.setattr(wellsep.INDICES, "_entries", dict(wellsep.INDICES._entries))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WELLSEP_CACHE", str(tmp_path / "cache"))
    namespace, absent, done = {"__name__": "__main__"}, set(), 0
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        for line, language, code, needed in blocks_of(path):
            missing = {name for name in needed if not find_spec(name)}
            if missing or absent & needed:
                absent |= missing
                continue
            done += 1
            if language == "sh":
                run_commands(code, f"{name_of(path)}:{line}")
            elif ">>> " in code:
                run_examples(code, namespace, (name_of(path), str(path), line))
            else:
                exec(compile(code, f"{name_of(path)}:{line}", "exec"), namespace)
    assert done or absent
    if absent:
        pytest.skip(f"some blocks need {', '.join(sorted(absent))}")


def test_a_block_is_run_unless_a_comment_says_why_not(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "```python\na = 1\n```\n\n<!-- not run: needs a GPU -->\n```sh\nwellsep demo\n```\n\n"
        "<!-- needs: torch -->\n```pycon\n>>> a\n1\n```\n\n```text\nwords\n```\n"
    )
    found = [(line, language, needed) for line, language, _, needed in blocks_of(page)]
    assert found == [(2, "python", set()), (12, "pycon", {"torch"})]


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_a_block_says_its_language_and_no_page_installs_from_an_index(path):
    text = path.read_text(encoding="utf-8")
    fences = re.findall(r"^```(.*)$", text, re.M)
    assert "" not in fences[::2]
    assert not re.search(r"pip install ['\"]?wellsep", text)


def test_no_message_or_example_installs_wellsep_from_an_index():
    files = [*(ROOT / "src").rglob("*.py"), *(ROOT / "examples").glob("*.py")]
    found = [
        path.name for path in files if re.search(r"pip install ['\"]*wellsep", path.read_text())
    ]
    assert found == []
