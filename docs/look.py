"""Look at the finished pages in a browser: nothing overflows, nothing is asked for, every link leads somewhere.

Usage: python docs/look.py docs/_build/html
"""

import shutil
import sys
from pathlib import Path
from urllib.parse import unquote, urldefrag

from playwright.sync_api import sync_playwright

WIDTHS = (390, 1280)
SCHEMES = ("light", "dark")
OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
LINKS = "[...document.querySelectorAll('a[href]')].map(link => link.href)"
ANCHORS = "[...document.querySelectorAll('[id]')].map(each => each.id)"


def main(folder: Path) -> None:
    """Complain about all that is wrong, and fail if anything is."""
    chromium = shutil.which("chromium")
    if chromium is None:
        print("no chromium here, so that nobody looks at the pages: `make ci-browser` installs it")
        return
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        complaints = [*_visit_all(browser, folder), *_search(browser, folder)]
        browser.close()
    print("\n".join(complaints) or "every page fits, no request leaves, every link leads somewhere")
    sys.exit(bool(complaints))


def _visit_all(browser, folder: Path) -> list[str]:
    complaints, links, anchors = [], {}, {}
    for width in WIDTHS:
        for scheme in SCHEMES:
            view = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
            page = view.new_page()
            page.on(
                "request",
                lambda request: (
                    _is_inside(request.url, folder) or complaints.append(f"asks for {request.url}")
                ),
            )
            page.on("pageerror", lambda error: complaints.append(f"fails: {error}"))
            for path in sorted(folder.rglob("*.html")):
                page.goto(path.as_uri())
                if (excess := page.evaluate(OVERFLOW)) > 0:
                    complaints.append(f"{path.name} is {excess} pixels too wide at {width}")
                links[path], anchors[path.as_uri()] = page.evaluate(LINKS), {"", *page.evaluate(ANCHORS)}
            view.close()
    return complaints + [
        f"{path.name}: no {link}"
        for path, found in links.items()
        for link in found
        if link.startswith("file:") and not _leads_somewhere(link, anchors)
    ]


def _leads_somewhere(link: str, anchors: dict[str, set[str]]) -> bool:
    address, anchor = urldefrag(link)
    return (
        unquote(anchor) in anchors.get(address, {""})
        and Path(unquote(address.removeprefix("file://"))).exists()
    )


def _is_inside(address: str, folder: Path) -> bool:
    return address.startswith((folder.as_uri(), "data:"))


def _search(browser, folder: Path) -> list[str]:
    """The search works without a server."""
    page = browser.new_page()
    page.goto(f"{(folder / 'search.html').as_uri()}?q=bracket")
    page.wait_for_selector("#search-results li a", timeout=10_000)
    return []


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
