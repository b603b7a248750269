"""A stranger finds each page of the documentation, and each page says what it does."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys

import pytest
from golden import ROOT

import wellsep

DOCS = ROOT / "docs"
MADE = {"_build", "generated", "auto_examples"}
PAGES = [path for path in sorted(DOCS.rglob("*.md")) if not MADE & set(path.parts)]
TOP = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")]
# Lists and included files; their first lines are of another kind.
LISTS = {
    "index", "get-started", "how-to", "understand", "project", "changelog", "cite", "glossary",
    "installation", "benchmarks", "papers",
}  # fmt: skip
TEXTS = [p for p in PAGES if p.stem not in LISTS]
# what people type into the search → the page that must answer
SEARCHED = {
    "elbow": "guides/choosing-k",
    "number of clusters": "guides/choosing-k",
    "outliers": "guides/noise",
    "noise": "guides/noise",
    "HDBSCAN": "guides/noise",
    "compare clusterings": "tutorials/first-ranking",
    "choose an embedding": "guides/ace",
    "silhouette on a GPU": "tutorials/large-data",
    "DBCV": "guides/indices",
    "how many clusters": "guides/choosing-k",
    "silhouette": "guides/indices",
    "install": "installation",
    "stability": "guides/stability",
    "UMAP": "guides/umap-hdbscan",
    "BERTopic": "guides/text-embeddings",
    "Hugging Face": "guides/hugging-face",
    "scanpy": "guides/scanpy",
    "troubleshooting": "guides/troubleshooting",
    "scale": "guides/prepare-data",
    "how long": "guides/how-long",
}
MOST_WORDS = 35  # of a sentence; the rule is 25, but a list of names may need more
BUILT_IN = dict(wellsep.INDICES.items())  # before any example registers one of its own


def name_of(path):
    return str(path.relative_to(ROOT))


def listed(path):
    """The pages in the tables of contents of one page."""
    text = path.read_text(encoding="utf-8")
    for block in re.findall(r"^```\{toctree\}\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        for line in block.splitlines():
            if line and not line.startswith(":"):
                entry = re.sub(r"^.*<(.*)>$", r"\1", line)
                yield (path.parent / f"{entry}.md").resolve()


def test_every_page_is_in_one_table_of_contents():
    entries = [entry for path in PAGES for entry in listed(path) if not MADE & set(entry.parts)]
    assert sorted(entries) == sorted(set(PAGES) - {DOCS / "index.md"})


@pytest.mark.parametrize("path", [*TOP, *PAGES], ids=name_of)
def test_the_links_of_a_page_lead_to_files(path):
    text = re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.M | re.S)
    targets = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text)
    local = [target for target in targets if not re.match(r"https?:|mailto:", target)]
    assert [target for target in local if not (path.parent / target).exists()] == []


@pytest.mark.parametrize("path", TEXTS, ids=name_of)
def test_a_page_says_what_it_does_and_shows_code_early(path):
    text = path.read_text(encoding="utf-8")
    _, title, opening, *_ = re.split(r"^# (.*)$", text, maxsplit=1, flags=re.MULTILINE)
    assert title
    assert re.match(r"\n+[`*{]?\w", opening)  # a sentence, not a heading or a picture
    assert not re.match(r"\n+For anyone", opening)
    assert "\n```" in opening[:3000]


def test_names_of_api_pages_differ_in_more_than_their_case():
    folders = ("plot", "deep", "adapters", "records")
    names = [name for name in wellsep.__all__ if not name.startswith("__")]
    for home in folders:
        names += [f"{home}.{name}" for name in all_of(home)]
    text = (DOCS / "conf.py").read_text()
    renamed = ast.literal_eval(
        re.search(r"autosummary_filename_map = (\{.*?\})", text, re.DOTALL)[1]
    )
    files = [renamed.get(f"wellsep.{name}", f"wellsep.{name}").lower() for name in names]
    assert sorted(set(files)) == sorted(files)


def test_reports_and_lists_of_the_project_are_kept_out_of_the_search():
    for name in ("benchmarks", "changelog", "checklist", "papers"):
        assert (DOCS / f"{name}.md").read_text(encoding="utf-8").startswith("---\nnosearch: true")


@pytest.mark.parametrize(("words", "page"), SEARCHED.items())
def test_what_people_search_for_is_in_a_heading_or_the_opening_of_the_page_on_it(words, page):
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    headings = re.findall(r"^#+ (.*)", text, re.MULTILINE)
    opening = text.split("\n```")[0]
    assert any(words.lower() in found.lower() for found in [*headings, opening])


def sentences(text):
    """Sentences of a page without code, formulas, tables, pictures and the addresses of links."""
    text = re.sub(r"^```.*?^```|^\$\$.*?\$\$|<!--.*?-->", "", text, flags=re.M | re.S)
    text = re.sub(r"^ *([#|!].*)$", "", text, flags=re.MULTILINE)
    text = re.sub(r"\]\([^)]*\)", "]", re.sub(r"`[^`]*`", "code", text))
    for paragraph in re.split(r"\n\s*\n|\n *(?:[*-]|\d+\.) ", text):
        yield from re.split(r"[.?!][\"*)]*\s+", " ".join(paragraph.split()))


@pytest.mark.parametrize("path", [ROOT / "README.md", *TEXTS], ids=name_of)
def test_no_page_has_a_sentence_that_must_be_read_twice(path):
    found = sentences(path.read_text(encoding="utf-8"))
    assert [one for one in found if len(one.split()) > MOST_WORDS] == []


def test_long_sentences_are_seen_and_code_is_not():
    page = "# A b\n\nOne two,\nthree. Five.\n\n```\nsix\n```\n\n| eight | nine |\n\n* ten `x y`\n"
    assert [s for s in sentences(page) if s] == ["One two, three", "Five.", "* ten code"]


def public_names():
    """Public names of the package and of its four rooms, read without importing these."""
    names = [name for name in wellsep.__all__ if not name.startswith("__")]
    return [
        *names,
        *(name for home in ("plot", "deep", "adapters", "records") for name in all_of(home)),
    ]


def all_of(home):
    """The public names of a package or module below wellsep, read without importing it."""
    source = ROOT / "src" / "wellsep"
    path = source / home / "__init__.py" if (source / home).is_dir() else source / f"{home}.py"
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            yield from ast.literal_eval(node.value)


def test_each_public_name_is_in_a_guide_or_a_story():
    told = [*PAGES, ROOT / "README.md", *(ROOT / "examples").glob("*.py")]
    words = set(re.findall(r"\w+", "\n".join(path.read_text(encoding="utf-8") for path in told)))
    assert [name for name in public_names() if name not in words] == []


def test_the_faq_has_twenty_questions_each_with_its_threads():
    parts = (DOCS / "faq.md").read_text(encoding="utf-8").split("\n### ")[1:]
    assert len(parts) >= 20
    assert [p.splitlines()[0] for p in parts if "https://github.com/" not in p] == []


def test_no_docstring_sends_the_reader_elsewhere_for_a_parameter():
    files = (ROOT / "src").rglob("*.py")
    lines = [(path.name, line) for path in files for line in path.read_text().splitlines()]
    elsewhere = re.compile(r"\s+As in (:func:|`)|.*\bas in ``?([A-Z]\w+|\w+_(score|partitions))`")
    assert [pair for pair in lines if elsewhere.match(pair[1])] == []


def test_the_guide_has_formula_range_limits_and_source_of_every_index():
    text = (DOCS / "guides" / "indices.md").read_text(encoding="utf-8")
    described = text[text.index("\n## Silhouette") : text.index("\n## Where each")]
    sections = described.split("\n## ")[1:]
    for section in sections:
        title = section.splitlines()[0]
        assert re.search(r"\bRange\b[^.]+(larger|\*\*smaller\*\*)\s+is\s+better", section), title
        assert "**Do not " in section, title
        assert re.search(r"\((19|20)\d\d\)\.", section), title
    for name, index in BUILT_IN.items():
        author, year = index.citation.split()[0].rstrip(","), index.citation[-5:-1]
        assert any(author in section and year in section for section in sections), name
        assert f"fails-{name.replace('_', '-')}.png" in text, name


def test_formulas_become_mathml():
    converter = pytest.importorskip("latex2mathml.converter", reason="needs the extra docs")
    formulas = []
    for path in PAGES:
        text = re.sub(r"^```.*?^```|`[^`\n]+`", "", path.read_text(), flags=re.M | re.S)
        formulas += re.findall(r"\$\$(.+?)\$\$", text, re.DOTALL)
        formulas += re.findall(r"(?<![$\\])\$([^$\n]+)\$(?!\$)", text)
    assert len(formulas) > 30
    for formula in formulas:
        assert converter.convert(formula).startswith("<math")


def test_the_pages_have_no_misspelt_word():
    codespell = shutil.which("codespell", path=f"{sys.prefix}/bin")
    if codespell is None:
        pytest.skip("needs codespell, from the extra docs")
    answer = subprocess.run([codespell], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert answer.stdout == ""
