"""The site in a browser: every page opens without a complaint, the search finds, the first page is light.

Needs `pip install 'minikeras[browser]'` and Chromium (`apt install chromium`). Pictures of pages go to `build/screenshots`.
"""

from __future__ import annotations

import asyncio
import pathlib
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

pytestmark = pytest.mark.site
playwright = pytest.importorskip("playwright.async_api", reason="pip install 'minikeras[browser]'")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-sync",
]
SCREENSHOTS = pathlib.Path(__file__).parents[2] / "build" / "screenshots"
AT_ONCE = 4
PATIENCE = 120_000
"""Milliseconds, for a machine that is busy with something else."""
NO_INDEX = '{"config":{"lang":["en"],"separator":"[\\\\s]+","pipeline":[],"fields":{}},"docs":[]}'
SHOWN = {
    "landing": "",
    "guide": "guides/second-order/",
    "api": "api/keras/layers/BatchNormalization/",
    "gallery": "gallery/",
}
FACTS = """() => ({
    paint: performance.getEntriesByName("first-contentful-paint")[0]?.startTime,
    bytes: [...performance.getEntriesByType("resource"), ...performance.getEntriesByType("navigation")]
        .reduce((sum, entry) => sum + entry.transferSize, 0),
    unseen: [...document.images].filter(image => image.complete && !image.naturalWidth).map(image => image.src),
    formulas: document.querySelectorAll(".arithmatex").length,
    rendered: document.querySelectorAll(".arithmatex > .katex, .arithmatex > .katex-display").length,
    sideways: document.documentElement.scrollWidth - innerWidth,
})"""


@pytest.fixture(scope="module")
def browse(address: str) -> Iterator[Any]:
    """Runs a coroutine that is given a browser."""
    if CHROMIUM is None:
        pytest.skip("no Chromium: apt install chromium")

    async def browsing(visit: Any) -> Any:
        async with playwright.async_playwright() as started:
            browser = await started.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
            try:
                return await visit(browser)
            finally:
                await browser.close()

    return lambda visit: asyncio.run(browsing(visit))


async def opened(context: Any, url: str, complaints: list[str]) -> Any:
    """A page that has loaded; what went wrong is added to the complaints."""
    page = await context.new_page()
    page.on("console", lambda message: message.type in ("error", "warning") and complaints.append(f"{url}: {message.text}"))
    page.on("pageerror", lambda error: complaints.append(f"{url}: {error}"))
    page.on("requestfailed", lambda request: complaints.append(f"{url}: {request.url} {request.failure}"))
    page.on("request", lambda request: request.url.startswith(url[:17]) or complaints.append(f"{url} asks {request.url}"))
    page.on("response", lambda answer: answer.status >= 400 and complaints.append(f"{url}: {answer.status} {answer.url}"))
    await page.goto(url, wait_until="load", timeout=PATIENCE)
    return page


def test_every_page_opens_without_a_complaint(browse: Any, site: pathlib.Path, address: str) -> None:
    """On a screen as narrow as a phone's, where nothing may reach beyond the side."""
    paths = sorted(page.relative_to(site).as_posix().removesuffix("index.html") for page in site.rglob("*.html"))
    of_source = [path for path in paths if path.startswith("source/")]
    waiting = [path for path in paths if path not in set(of_source)] + of_source[::25]  # one as the other, and without scripts
    complaints: list[str] = []

    async def worker(browser: Any) -> None:
        context = await browser.new_context(viewport={"width": 390, "height": 844})
        await context.route("**/search_index.json", lambda route: route.fulfill(body=NO_INDEX, content_type="application/json"))
        while waiting:
            path = waiting.pop()
            page = await opened(context, address + path, complaints)
            facts = await page.evaluate(FACTS)
            if facts["formulas"] > facts["rendered"]:
                await page.wait_for_function("document.querySelectorAll('.arithmatex').length == " + RENDERED)
            if facts["unseen"] or (facts["sideways"] > 0 and not path.startswith("source/")):
                complaints.append(f"{path}: {facts}")
            await page.close()

    async def visit(browser: Any) -> None:
        await asyncio.gather(*[worker(browser) for _ in range(AT_ONCE)])

    browse(visit)
    assert not complaints, complaints[:20]


RENDERED = "document.querySelectorAll('.arithmatex > .katex, .arithmatex > .katex-display').length"


@pytest.mark.parametrize(
    ("words", "page"),
    [
        ("BatchNormalization", "api/keras/layers/BatchNormalization/"),
        ("Newton", "api/keras/optimizers/Newton/"),
        ("GradientTape", "api/GradientTape/"),
        ("why is my gradient None", "guides/explaining-gradients/"),
        ("Dense", "api/keras/layers/Dense/"),
    ],
)
def test_the_search_finds(words: str, page: str, browse: Any, address: str) -> None:
    async def visit(browser: Any) -> list[str]:
        tab = await opened(await browser.new_context(), address, [])
        await tab.fill("input.md-search__input", words)
        await tab.wait_for_selector(".md-search-result__item", timeout=PATIENCE)
        links = ".md-search-result__item > a, .md-search-result__link"
        found: list[str] = await tab.eval_on_selector_all(links, "found => found.map(link => link.href)")
        return found

    found = [link.removeprefix(address).partition("?")[0] for link in browse(visit)]
    assert page in found[:3], found[:10]


def test_the_first_page_is_light_and_soon_there(browse: Any, address: str) -> None:
    async def visit(browser: Any) -> dict[str, Any]:
        page = await opened(await browser.new_context(viewport={"width": 1280, "height": 900}), address, [])
        await page.wait_for_load_state("networkidle")
        facts: dict[str, Any] = await page.evaluate(FACTS)
        return facts

    facts = browse(visit)
    print(f"first paint {facts['paint']:.0f} ms, {facts['bytes']} bytes")
    assert facts["bytes"] < 1_000_000


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_pictures_are_taken_to_be_looked_at(width: int, scheme: str, browse: Any, address: str) -> None:
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    complaints: list[str] = []

    async def visit(browser: Any) -> None:
        context = await browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        for name, path in SHOWN.items():
            page = await opened(context, address + path, complaints)
            await page.wait_for_load_state("networkidle")
            await page.screenshot(path=SCREENSHOTS / f"{name}-{width}-{scheme}.png", full_page=True)
            await page.close()

    browse(visit)
    assert not complaints, complaints
