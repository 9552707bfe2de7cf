"""The site in a browser: every page opens without a complaint, the search finds, the first page is light.

Needs `pip install 'minikeras[browser]'` and Chromium (`apt install chromium`). Pictures of pages go to `build/screenshots`.
"""

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
AT_ONCE, PARTS = 2, 8
PATIENCE = 120_000
"""Milliseconds, for a machine that is busy with something else."""
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
    sideways: document.documentElement.scrollWidth - innerWidth,
    raw: [...document.querySelectorAll(".arithmatex")].filter(formula => !formula.querySelector(".katex")).length,
})"""
SEARCH = "input.md-search__input"


@pytest.fixture(scope="module")
def browse() -> Iterator[Any]:
    """Runs a coroutine that is given a browser, the same for all tests."""
    if CHROMIUM is None:
        pytest.skip("no Chromium: apt install chromium")

    async def start() -> tuple[Any, Any]:
        started = await playwright.async_playwright().start()
        return started, await started.chromium.launch(executable_path=CHROMIUM, args=FLAGS)

    with asyncio.Runner() as runner:
        started, browser = runner.run(start())
        yield lambda visit: runner.run(visit(browser))
        runner.run(browser.close())
        runner.run(started.stop())


def watched(page: Any, address: str) -> list[str]:
    """What goes wrong on the pages that a tab shows, as it happens."""
    complaints: list[str] = []

    def complain(what: object) -> None:
        complaints.append(f"{page.url.removeprefix(address)}: {what}")

    page.on("console", lambda message: message.type in ("error", "warning") and complain(message.text))
    page.on("pageerror", complain)
    page.on("request", lambda request: request.url.startswith((address, "data:", "blob:")) or complain(request.url))
    page.on("response", lambda answer: answer.status >= 400 and complain(f"{answer.status} {answer.url}"))
    return complaints


@pytest.mark.parametrize("part", range(PARTS))
def test_every_page_opens_without_a_complaint(part: int, browse: Any, site: pathlib.Path, address_without_index: str) -> None:
    """On a screen as narrow as a phone's, where nothing may reach beyond the side and every formula is rendered."""
    address = address_without_index
    paths = sorted(page.relative_to(site).as_posix().removesuffix("index.html") for page in site.rglob("*.html"))
    of_source = [path for path in paths if path.startswith("source/")]
    chosen = [*sorted(set(paths) - set(of_source)), *of_source[::25]]  # those have no scripts and are like each other
    waiting = chosen[part::PARTS]
    complaints: list[str] = []

    async def tab(browser: Any) -> None:
        context = await browser.new_context(viewport={"width": 390, "height": 844})
        page = await context.new_page()
        found = watched(page, address)
        while waiting:
            path = waiting.pop()
            await page.goto(address + path, wait_until="load", timeout=PATIENCE)
            facts = await page.evaluate(FACTS)
            if facts["unseen"] or facts["raw"] or (facts["sideways"] > 0 and not path.startswith("source/")):
                found.append(f"{path}: {facts}")
        complaints.extend(found)
        await context.close()

    async def visit(browser: Any) -> None:
        await asyncio.gather(*[tab(browser) for _ in range(AT_ONCE)])

    browse(visit)
    assert not complaints, complaints[:20]


@pytest.fixture(scope="module")
def search(browse: Any, address: str) -> Any:
    """A tab whose search has been opened."""

    async def opened(browser: Any) -> Any:
        tab = await browser.new_page()
        await tab.goto(address, timeout=PATIENCE)
        await tab.focus(SEARCH)
        return tab

    return browse(opened)


@pytest.mark.parametrize(
    ("words", "page"),
    [
        ("Adam", "api/keras/optimizers/Adam/"),
        ("BatchNormalization", "api/keras/layers/BatchNormalization/"),
        ("Dense", "api/keras/layers/Dense/"),
        ("fit", "api/keras/Model/"),
        ("GradientTape", "api/GradientTape/"),
        ("Model", "api/keras/Model/"),
        ("Newton", "api/keras/optimizers/Newton/"),
        ("reduce_sum", "api/reduce_sum/"),
        ("why is my gradient None", "guides/explaining-gradients/"),
        ("gpu", "guides/devices/"),
        ("LSTM", "api/keras/layers/LSTM/"),
    ],
)
def test_the_search_finds_first(words: str, page: str, browse: Any, search: Any, address: str) -> None:
    """The results change while words are typed and the index is read."""

    async def results() -> list[str]:
        links: list[str] = await search.eval_on_selector_all(".md-search-result__link", "links => links.map(link => link.href)")
        return [link.partition("?")[0].removeprefix(address) for link in links]

    async def visit(_: Any) -> None:
        for text, found in (("", lambda links: not links), (words, lambda links: page in links[:1])):
            await search.fill(SEARCH, text)
            await search.press(SEARCH, "End")
            for _ in range(600):
                links = await results()
                if found(links):
                    break
                await asyncio.sleep(0.1)
            else:
                raise AssertionError(links[:5])

    browse(visit)


def test_the_first_page_is_light_and_soon_there(browse: Any, address: str) -> None:
    async def visit(browser: Any) -> dict[str, Any]:
        page = await browser.new_page(viewport={"width": 1280, "height": 900})
        await page.goto(address, timeout=PATIENCE)
        await page.wait_for_load_state("networkidle", timeout=PATIENCE)
        await page.wait_for_function('performance.getEntriesByName("first-contentful-paint").length', timeout=PATIENCE)
        facts: dict[str, Any] = await page.evaluate(FACTS)
        return facts

    facts = browse(visit)
    print(f"first paint {facts['paint']:.0f} ms, {facts['bytes']} bytes")
    assert facts["bytes"] < 1_000_000


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_pictures_are_taken_to_be_looked_at(width: int, scheme: str, browse: Any, address: str) -> None:
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)

    async def visit(browser: Any) -> list[str]:
        page = await browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        complaints = watched(page, address)
        for name, path in SHOWN.items():
            await page.goto(address + path, timeout=PATIENCE)
            await page.wait_for_load_state("networkidle", timeout=PATIENCE)
            await page.screenshot(path=SCREENSHOTS / f"{name}-{width}-{scheme}.png", full_page=True, timeout=PATIENCE)
        return complaints

    assert not browse(visit)
