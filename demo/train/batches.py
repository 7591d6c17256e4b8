"""Training rows: natural text, recall documents, and repeated noise."""

import random
from functools import lru_cache

import torch

import corpus
import recall

N_SPECIALS = 4
LOSS_WEIGHTS = {recall.PLAIN: 1.0, recall.STATED: 0.1, recall.ANSWER: 2.0}


class Source:
    """Draws rows from one side of the held-out split, repeatably by `seed`."""

    def __init__(self, tokenizer, bible_path, held_out, seed):
        self.rng = random.Random(seed)
        self.end = tokenizer.token_to_id("</s>")
        self.vocabulary = tokenizer.get_vocab_size()
        self.encode = lru_cache(200_000)(
            lambda text: tokenizer.encode(text, add_special_tokens=False).ids
        )
        chapters = corpus.split_chapters(corpus.read_chapters(bible_path))[held_out]
        self.natural = []
        self.verse_starts = []
        for chapter in chapters:
            self.natural.append(self.end)
            for i, verse in enumerate(chapter):
                self.verse_starts.append(len(self.natural))
                self.natural += self.encode(verse if i == 0 else "\n" + verse)
        verses = [verse for chapter in chapters for verse in chapter]
        self.writer = recall.Writer(
            seed, verses, held_out, count=lambda text: len(self.encode(text))
        )

    def natural_row(self, length):
        """`</s>` and the text from the start of a verse on."""
        start = min(self.rng.choice(self.verse_starts), len(self.natural) - length)
        row = [self.end] + self.natural[start : start + length]
        return row, [1.0] * length, [False] * length

    def recall_row(self, shape):
        """A document, and as much of the next as fills the row."""
        tokens, weights, is_answer = [self.end], [], []
        while len(tokens) <= shape.length:
            for piece in self.writer.document(shape):
                ids = self.encode(piece.text)
                tokens += ids
                weights += [LOSS_WEIGHTS[piece.role]] * len(ids)
                is_answer += [piece.role == recall.ANSWER] * len(ids)
            tokens.append(self.end)
            weights.append(1.0)
            is_answer.append(False)
        length = shape.length
        return tokens[: length + 1], weights[:length], is_answer[:length]

    def random_tokens(self, alphabet, n):
        """`n` different ones of `alphabet` tokens spread over the vocabulary."""
        stride = (self.vocabulary - N_SPECIALS) // alphabet
        return [N_SPECIALS + stride * i for i in self.rng.sample(range(alphabet), n)]

    def repeated_row(self, stage):
        """Random tokens said over and over: copying is all there is to learn."""
        length = stage.shape.length
        period = self.rng.randint(*stage.periods)
        return self.said_again(self.random_tokens(stage.alphabet, period), length)

    def shuffled_row(self, stage):
        """A verse with its words in random order, said over and over: only
        copying helps, as with a passage of a book never seen."""
        length = stage.shape.length
        verse_words = self.rng.choice(self.writer.passages).split()
        self.rng.shuffle(verse_words)
        words = self.encode("\n" + " ".join(verse_words))
        return self.said_again(words[: length // 2], length)

    def said_again(self, said, length):
        row = (said * (length // len(said) + 1))[:length]
        again = [i >= len(said) for i in range(length)]
        return [self.end] + row, [float(counts) for counts in again], again

    def batch(self, stage):
        """(tokens [rows, length + 1], weights and is_answer [rows, length])."""
        make = {
            "natural": lambda: self.natural_row(stage.shape.length),
            "recall": lambda: self.recall_row(stage.shape),
            "repeated": lambda: self.repeated_row(stage),
            "shuffled": lambda: self.shuffled_row(stage),
        }
        kinds = self.rng.choices(list(make), [getattr(stage, kind) for kind in make], k=stage.rows)
        tokens, weights, is_answer = zip(*(make[kind]() for kind in kinds))
        return torch.tensor(tokens), torch.tensor(weights), torch.tensor(is_answer)
