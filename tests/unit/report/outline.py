"""The outline of a page, as a reader without a browser finds it."""

from __future__ import annotations

from collections import Counter
from html.parser import HTMLParser


class Outline(HTMLParser):
    """Ids, headings, tags and text of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.tags: Counter[str] = Counter()
        self.text: list[str] = []
        self._style = False
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags[tag] += 1
        found = dict(attrs)
        self.ids += [found["id"]] if "id" in found else []
        self.links += [found[name] for name in ("href", "src") if name in found]
        self._style = tag == "style"

    def handle_endtag(self, tag):
        self._style = False

    def handle_data(self, data):
        if not self._style:
            self.text.append(data)
