"""Builds the documentation as static pages with a search, for `make docs`: python scripts/site.py FOLDER

The pages need no web server and load nothing from elsewhere. A link without a page, or without its heading, fails.
"""

from __future__ import annotations

import posixpath
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Final

from sphinx.cmd.build import main as build

ROOT: Final = Path(__file__).resolve().parents[1]
DOCS: Final = ROOT / "docs"
ELSEWHERE: Final = {"client.md": "client/README.md", "changelog.md": "CHANGELOG.md"}
"""The pages made of files outside `docs`."""
PARTS: Final = {
    "Begin": ("first-steps", "coming-from", "troubleshooting", "glossary", "features"),
    "Use": ("manifests", "examples/index", "api", "kubectl", "client"),
    "Decide": ("scheduling", "devices"),
    "Operate": ("operations", "metrics", "cluster", "switching", "changelog"),
    "Develop": ("development", "architecture", "style", "decisions/index"),
}
"""The table of contents; a page that it lacks fails."""
_LINK: Final = re.compile(r"\[([^\]]*)\]\(([^)\s#:]+)(#[^)]*)?\)")
_SETTINGS: Final = {
    "project": "kueueweb",
    "html_title": "kueueweb",
    "html_theme": "furo",
    "html_show_copyright": "0",
    "html_show_sphinx": "0",
    "html_copy_source": "0",
    "extensions": "myst_parser,sphinx_copybutton",
    "myst_heading_anchors": "4",
    "source_suffix": ".md",
    "root_doc": "index",
    "language": "en",
}


def main(folder: Path) -> int:
    """Write the site to the folder; return 0, or Sphinx's exit code if it fails."""
    with tempfile.TemporaryDirectory() as staged:
        write_sources(Path(staged))
        settings = [word for name, value in _SETTINGS.items() for word in ("-D", f"{name}={value}")]
        return build(["-C", "-W", "--keep-going", "-q", "-E", "-b", "html", *settings, staged, str(folder)])


def write_sources(folder: Path) -> None:
    """Write the pages from which the site is built."""
    shutil.copytree(DOCS, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("README.md", "*.yaml"))
    pages = {path.relative_to(DOCS).as_posix(): path.read_text() for path in DOCS.rglob("*.md")}
    pages = {page: text for page, text in pages.items() if page != "README.md"}
    pages |= {page: (ROOT / source).read_text() for page, source in ELSEWHERE.items()}
    pages |= {"index.md": _index(), "decisions/index.md": _decisions(), "examples/index.md": _examples()}
    for page, text in pages.items():
        target = folder / page
        target.parent.mkdir(exist_ok=True)
        target.write_text(_linked(page, text))


def _linked(page: str, text: str) -> str:
    """Let links lead to pages of the site; a link to a file that is no page keeps its text only."""
    source = ELSEWHERE.get(page, "docs/README.md" if page == "index.md" else f"docs/{page}")

    def link(found: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), found[2]))
        there = _page_of(path)
        if not there:
            return found[1]
        return f"[{found[1]}]({posixpath.relpath(there, posixpath.dirname(page) or '.')}{found[3] or ''})"

    return _LINK.sub(link, text)


def _page_of(path: str) -> str:
    """Return the page or file of the site for a path of the repository; empty without one."""
    for page, source in ELSEWHERE.items():
        if path == source:
            return page
    if not path.startswith("docs/"):
        return ""
    place = path.removeprefix("docs/")
    if place == "README.md":
        return "index.md"
    if (DOCS / place).is_dir():
        return f"{place}/index.md"
    return "examples/index.md" if place.startswith("examples/") else place


def _index() -> str:
    trees = []
    for caption, pages in PARTS.items():
        trees.append("\n".join(("```{toctree}", ":hidden:", f":caption: {caption}", "", *pages, "```")))
    return "\n\n".join(((DOCS / "README.md").read_text().rstrip(), *trees))


def _decisions() -> str:
    names = sorted(path.stem for path in (DOCS / "decisions").glob("*.md"))
    tree = "\n".join(("```{toctree}", ":maxdepth: 1", "", *names, "```"))
    return f"# Decisions\n\nOne page for each decision: the choice and its reason.\n\n{tree}"


def _examples() -> str:
    paths = sorted((DOCS / "examples").glob("*.yaml"))
    manifests = (f"## {path.stem}\n\n```yaml\n{path.read_text().rstrip()}\n```" for path in paths)
    return "\n\n".join(("# Examples", "A manifest of each kind of job.", *manifests))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
