"""Documents that state things early and ask for them late.

Three kinds, mixed within a document: facts (names and their values), shopping
lists, and sayings repeated word for word.  Training and held-out documents share
no fact, list or saying, so a held-out answer can only be read off the document.
"""

import random
import zlib
from dataclasses import dataclass

import words

PLAIN, STATED, ANSWER = "plain", "stated", "answer"
HELD_OUT_SHARE = 8  # one combination in eight is never trained on


@dataclass(frozen=True)
class Piece:
    """A stretch of text that is tokenized alone: it starts at a word boundary.
    Statements and answers about the same thing say the same `about`."""

    text: str
    role: str = PLAIN
    about: str = ""


@dataclass(frozen=True)
class Shape:
    """What a document is like: how many tokens, facts and topics, and which
    part of its length is natural text between statements and questions."""

    length: int
    facts: tuple = (2, 5)
    topics: tuple = (1, 1)
    filler: tuple = (0.0, 0.0)
    kinds: tuple = (6, 2, 2)  # how often a topic is facts, a list, a saying


# (opening, keys, values, question)
RELATIONS = (
    ("These people came.", words.NAMES, words.FAMILIES, "Who came?"),
    ("Everyone lives in a town.", words.NAMES, words.TOWNS, "Who lives where?"),
    ("Everyone sleeps in a room.", words.NAMES, words.NUMBERS, "Which room?"),
    ("These are the prices.", words.FOODS, words.NUMBERS, "What price?"),
    ("These things are here.", words.ADJECTIVES, words.NOUNS, "What is here?"),
)


def is_held_out(combination):
    return zlib.crc32(combination.encode()) % HELD_OUT_SHARE == 0


class Facts:
    """`Everyone lives in a town. Mara Rome. Tobin Paris.` ... `Who lives where? Mara Rome.`

    The value stands next to its key: a model this small finds the word behind
    a word long before it finds the word two behind.
    """

    def __init__(self, rng, shape, held_out, _passages):
        self.rng = rng
        self.opening, keys, values, self.question = rng.choice(RELATIONS)
        self.values = {}
        n_facts = rng.randint(*shape.facts)
        while len(self.values) < n_facts:
            key, value = rng.choice(keys), rng.choice(values)
            if is_held_out(f"{key} {value}") == held_out:
                self.values.setdefault(key, value)

    def statement(self):
        yield Piece("\n" + self.opening)
        for key, value in self.values.items():
            yield Piece(f" {key}")
            yield Piece(f" {value}", STATED, key)
            yield Piece(".")

    def questions(self):
        """One round: every fact is asked once, in random order."""
        for key in self.rng.sample(list(self.values), len(self.values)):
            answer = Piece(f" {self.values[key]}", ANSWER, key)
            yield [Piece(f"\n{self.question} {key}"), answer, Piece(".")]


class ShoppingList:
    """`The list: salt figs oil.`; its first item is given and the others asked."""

    def __init__(self, rng, shape, held_out, _passages):
        while True:
            self.items = rng.sample(words.NOUNS, rng.randint(4, 8))
            if is_held_out(" ".join(self.items)) == held_out:
                return

    def _pieces(self, opening, role):
        yield Piece(f"\n{opening} {self.items[0]}")
        for i, item in enumerate(self.items[1:]):
            yield Piece(f" {item}", role, f"item {i}")
        yield Piece(".")

    def statement(self):
        yield from self._pieces("This is the shopping list:", STATED)

    def questions(self):
        yield list(self._pieces("Read the list again:", ANSWER))


class Saying:
    """A passage of natural text; its first words are given and the rest asked."""

    N_CUE_WORDS = 4  # enough to tell the saying from other verses
    N_ANSWER_WORDS = 3

    def __init__(self, rng, shape, _held_out, passages):
        self.words = rng.choice(passages).split()
        n_words = rng.randint(9, 10 + min(30, shape.length // 16))
        start = rng.randrange(max(1, len(self.words) - n_words + 1))
        self.words = self.words[start : start + n_words]

    def _pieces(self, opening, role):
        cue = " ".join(self.words[: self.N_CUE_WORDS])
        yield Piece(f"\n{opening} {cue}")
        for i in range(self.N_CUE_WORDS, len(self.words), self.N_ANSWER_WORDS):
            yield Piece(" " + " ".join(self.words[i : i + self.N_ANSWER_WORDS]), role, f"word {i}")

    def statement(self):
        yield from self._pieces("Learn this saying:", STATED)

    def questions(self):
        yield list(self._pieces("Say it again:", ANSWER))


TOPICS = (Facts, ShoppingList, Saying)


class Writer:
    """Writes recall documents.  `passages` are verses, for sayings and filler;
    `count` gives the number of tokens of a piece's text."""

    def __init__(self, seed, passages, held_out, count):
        self.rng = random.Random(seed)
        self.passages = passages
        self.held_out = held_out
        self.count = count

    def document(self, shape):
        """A list of pieces of at most `shape.length` tokens."""
        rng = self.rng
        topics = self._topics(shape)
        statement = [piece for topic in topics for piece in topic.statement()]
        room = shape.length - self._length(statement)
        filler = self._filler(int(room * rng.uniform(*shape.filler)))
        questions = self._questions(topics, room - self._length(filler))
        n_late = max(1, int(len(questions) * rng.uniform(0.5, 1.0)))
        late, early = questions[:n_late], questions[n_late:]
        body = self._scatter(early, filler)
        return statement + body + [piece for question in late for piece in question]

    def _length(self, pieces):
        return sum(self.count(piece.text) for piece in pieces)

    def _topics(self, shape):
        n_topics = self.rng.randint(*shape.topics)
        kinds = []
        while len(kinds) < n_topics:
            kind = self.rng.choices(TOPICS, shape.kinds)[0]
            if kind not in kinds:
                kinds.append(kind)
        return [kind(self.rng, shape, self.held_out, self.passages) for kind in kinds]

    def _questions(self, topics, room):
        """Rounds of questions until the next one would not fit."""
        questions = []
        while True:
            asked = [question for topic in topics for question in topic.questions()]
            self.rng.shuffle(asked)
            for question in asked:
                room -= self._length(question)
                if room < 0:
                    return questions
                questions.append(question)

    def _filler(self, room):
        """Consecutive verses, as many as fit."""
        filler = []
        at = self.rng.randrange(len(self.passages))
        while at < len(self.passages):
            piece = Piece("\n" + self.passages[at])
            room -= self.count(piece.text)
            if room < 0:
                break
            filler.append(piece)
            at += 1
        return filler

    def _scatter(self, questions, filler):
        """The filler with some questions between its verses."""
        slots = [[piece] for piece in filler]
        for question in questions:
            slots.insert(self.rng.randint(0, len(slots)), question)
        return [piece for slot in slots for piece in slot]


def as_text(pieces):
    return "".join(piece.text for piece in pieces).lstrip("\n")
