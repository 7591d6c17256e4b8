"""Trains the byte-level BPE on the mixture that the model is trained on.

    tokenizer.py --bible kjv.txt --vocabulary 1536 --out model/tokenizer.json
"""

import argparse

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

import corpus
import recall

SPECIALS = ["<s>", "<pad>", "</s>", "<unk>"]  # ids 0..3, as OPT has them
N_RECALL_DOCUMENTS = 12000


def texts(bible_path):
    """Natural chapters, then recall documents without filler."""
    training, _ = corpus.split_chapters(corpus.read_chapters(bible_path))
    yield from (corpus.as_text(chapter) for chapter in training)
    verses = [verse for chapter in training for verse in chapter]
    writer = recall.Writer(1, verses, held_out=False, count=lambda text: len(text) // 3)
    shape = recall.Shape(length=160)
    for _ in range(N_RECALL_DOCUMENTS):
        yield recall.as_text(writer.document(shape))


def train(bible_path, vocabulary):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(
        texts(bible_path),
        trainers.BpeTrainer(
            vocab_size=vocabulary,
            special_tokens=SPECIALS,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    end = tokenizer.token_to_id("</s>")
    tokenizer.post_processor = processors.TemplateProcessing(
        single="</s> $A", pair="</s> $A </s> $B", special_tokens=[("</s>", end)]
    )
    return tokenizer


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bible", required=True)
    parser.add_argument("--vocabulary", type=int, default=1536)
    parser.add_argument("--out", required=True)
    arguments = parser.parse_args()
    tokenizer = train(arguments.bible, arguments.vocabulary)
    tokenizer.save(arguments.out)
    print(f"{arguments.out}: {tokenizer.get_vocab_size()} tokens")


if __name__ == "__main__":
    main()
