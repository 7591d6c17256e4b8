/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of the paper's experiments for one model, in order. %d: the model's folder of results, %m: the model,
 * %t: --text FILE... or --jsonl FILE --field NAME, %j: the latter alone, %l: --length, %n: --count, %c: --count of
 * documents, %b: budgets, %i: --count of a task's questions, %s: --shots, %q: the policy for them, %v: --model DIR
 * if Theorem 3.1 can be tested, %k: the folder of the tasks, %r: tokens to write. The command skips a step that needs
 * %j or a file of %k that is missing, and says so. */
#ifndef SH_CLI_REPRODUCE_STEPS_H
#define SH_CLI_REPRODUCE_STEPS_H

#include "src/cli/steps.h"

#define T " --db %d/trained.db"
#define READ "eval --model %m %t --length %l --count %n" T
#define TASK(name, file) {"task-" name ".txt", "eval --model %m --task " name " --data %k/" file " --shots %s " \
                          "--count %i --policy full window %q --budget 0.5,0.2" T, 0}

#define PAPER " --model opt-175b,llama-65b,bloom-176b --gpu A100-SXM-80GB --tp 8 --length 2048"

/* The traces that the rest is measured on, and the figures of the stores alone. */
static const struct sh_step sh_reproduce_steps[] = {
    {"trace.txt", "trace --model %m" T " %t --length %l --count %n --vectors qkv", 0},
    {"trace-random.txt", "trace --model %m --db %d/random.db %t --length %l --count %n --random-weights", 0},
    {"persistence.txt", "persistence" T, 0},
    {"persistence-beyond.txt", "persistence" T " --alpha 5/t --recent 10", 0},
    {"persistence-random.txt", "persistence --db %d/random.db", 0},
    {"replay.txt", "replay" T " --policy all --budget %b", 0},
    {"plan.txt", "plan" T " --policy scissorhands --target-recall 0.9 --allocator greedy -o %d/plan.json", 0},
    {"eval.txt", READ " --policy window streaming h2o scissorhands --budget %b", 0},
    {"eval-4bit.txt", READ " --policy full scissorhands --budget 0.5 --kv-bits 4", 0},
    {"eval-weights-4bit.txt", READ " --policy full scissorhands --budget 0.5 --weight-bits 4", 0},
    {"eval-weights-pruned.txt", READ " --policy full scissorhands --budget 0.5 --weight-prune 0.5", 0},
    {"eval-length.txt", "eval --model %m %j --count %c --policy window scissorhands --budget 0.5 --by length" T, 0},
    TASK("hellaswag", "hellaswag.jsonl"),
    {"task-hellaswag-4bit.txt", "eval --model %m --task hellaswag --data %k/hellaswag.jsonl --shots %s --count %i "
     "--policy full %q --budget 0.5 --kv-bits 4" T, 0},
    TASK("mathqa", "math_qa.jsonl"),
    TASK("piqa", "piqa.jsonl"),
    TASK("winogrande", "winogrande.jsonl"),
    TASK("openbookqa", "openbook_qa.jsonl"),
    {"drift.txt", "drift --model %m" T " --policy scissorhands --budget 0.3333 --count 1", 0},
    {"theory.txt", "theory" T " %v", 0},
    {"repetition.txt", "repetition --model %m %t --length %l --count %n --max-tokens %r --policy scissorhands "
     "--budget 0.5" T, 0},
    {"table-1.txt", "capacity" PAPER " --batch 128", 0},
    {"table-2.txt", "capacity" PAPER, 0},
    {"figure-1.txt", "plot heatmap" T " -o %d/figure-1-attention-map.svg", 1},
    {"figure-2.txt", "plot persistence" T " %d/random.db -o %d/figure-2-persistence.svg", 1},
    {"figure-3.txt", "plot compression" T " -o %d/figure-3-compression.svg", 1},
    {"figure-4.txt", "plot score-change" T " -o %d/figure-4-score-change.svg", 1},
    {"figure-5.txt", "plot heatmap --db %d/random.db -o %d/figure-5-random-weights.svg", 1},
    {"leaderboard.txt", "plot leaderboard" T " -o %d/leaderboard.svg", 1},
    {"report.txt", "report" T " %d/random.db --plan %d/plan.json --model %m -o %d/report.html", 1},
    {0}};

#undef T
#undef READ
#undef TASK
#undef PAPER

#endif
