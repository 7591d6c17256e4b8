"""Writes the texts that the model never saw.

    held_out.py --bible kjv.txt --tokenizer ../model/tokenizer.json --out ../text

natural.txt: the held-out books, a verse a line, an empty line between chapters.
recall.jsonl: recall documents; a question is where its answer begins (`at`, a
byte offset; the answer begins with its space), the answer, and where the same
thing was said last (`said_at`).  recall.txt: the same documents, to be read.
"""

import argparse
import json
from pathlib import Path

from tokenizers import Tokenizer

import corpus
import recall

N_DOCUMENTS = 60
LENGTHS = (460, 511)  # tokens; with `</s>` in front a document fits 512
SHAPE = recall.Shape(LENGTHS[1], facts=(4, 9), topics=(1, 3), filler=(0.65, 0.85))
SEED = 20


def natural_text(chapters):
    return "\n\n".join(corpus.as_text(chapter) for chapter in chapters) + "\n"


def as_record(pieces):
    """The text of a document with its questions; pieces[0] begins with a newline
    that the text does not."""
    text, said_at, questions = "", {}, []
    for piece in pieces:
        at = len(text)
        text += piece.text if text else piece.text.lstrip("\n")
        if piece.role == recall.ANSWER:
            questions.append({"at": at, "answer": piece.text, "said_at": said_at[piece.about]})
        if piece.role != recall.PLAIN:
            said_at[piece.about] = at
    return {"text": text, "questions": questions}


def recall_records(verses, tokenizer):
    def count(text):
        return len(tokenizer.encode(text, add_special_tokens=False))

    writer = recall.Writer(SEED, verses, held_out=True, count=count)
    records = []
    while len(records) < N_DOCUMENTS:
        record = as_record(writer.document(SHAPE))
        if LENGTHS[0] <= count(record["text"]) <= LENGTHS[1]:
            records.append(record)
    return records


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bible", required=True)
    parser.add_argument("--tokenizer", required=True)
    parser.add_argument("--out", required=True)
    arguments = parser.parse_args()
    out = Path(arguments.out)
    _, chapters = corpus.split_chapters(corpus.read_chapters(arguments.bible))
    natural = natural_text(chapters)
    (out / "natural.txt").write_text(natural)
    verses = [verse for chapter in chapters for verse in chapter]
    records = recall_records(verses, Tokenizer.from_file(arguments.tokenizer))
    (out / "recall.jsonl").write_text("".join(json.dumps(r) + "\n" for r in records))
    (out / "recall.txt").write_text("\n\n".join(r["text"] for r in records) + "\n")
    n_questions = sum(len(record["questions"]) for record in records)
    print(f"natural.txt: {len(natural)} bytes")
    print(f"recall.jsonl: {len(records)} documents, {n_questions} questions")


if __name__ == "__main__":
    main()
