"""The natural text: the King James Bible as the `bible` program prints it.

Whole books are held out, so no chapter of the held-out text was ever trained on.
"""

import re

HELD_OUT_BOOKS = ("Jdgs", "Ruth", "Est", "Jonah")
VERSE = re.compile(r"^([1-3]?[A-Za-z]+)(\d+):(\d+) (.*)$")


def read_chapters(path):
    """{(book, chapter): [verse, ...]} in the order of the printed text."""
    chapters = {}
    with open(path, encoding="ascii") as lines:
        for line in lines:
            match = VERSE.match(line)
            if match:
                book, chapter, _, verse = match.groups()
                chapters.setdefault((book, int(chapter)), []).append(verse)
    return chapters


def split_chapters(chapters):
    """(training, held out), each a list of chapters, a chapter a list of verses."""
    training = [v for (book, _), v in chapters.items() if book not in HELD_OUT_BOOKS]
    held_out = [v for (book, _), v in chapters.items() if book in HELD_OUT_BOOKS]
    return training, held_out


def as_text(chapter):
    """A chapter as text: one verse a line."""
    return "\n".join(chapter)
