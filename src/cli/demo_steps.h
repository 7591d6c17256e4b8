/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of the demonstration in their order: commands with %f for its folder, and the file that each one's
 * output goes to. */
#ifndef SH_CLI_DEMO_STEPS_H
#define SH_CLI_DEMO_STEPS_H

#include "src/cli/steps.h"

#define SIZE " --length 512 --count 6"
#define VALUES " --vectors v"
#define READ " --model %f/demo-opt --text %f/natural.txt --length 512 --count 4 --db %f/trained.db"
#define POLICIES " --policy h2o:recent=10 scissorhands streaming"

static const struct sh_step sh_demo_steps[] = {
    {"trained-natural.txt", "trace --model %f/demo-opt --db %f/trained.db --text %f/natural.txt" SIZE VALUES, 0},
    {"trained-recall.txt", "trace --model %f/demo-opt --db %f/trained.db --jsonl %f/recall.jsonl" SIZE VALUES, 0},
    {"random-natural.txt", "trace --model %f/demo-opt --db %f/random.db --text %f/natural.txt" SIZE " "
     "--random-weights", 0},
    {"random-recall.txt", "trace --model %f/demo-opt --db %f/random.db --jsonl %f/recall.jsonl" SIZE " "
     "--random-weights", 0},
    {"persistence-trained.txt", "persistence --db %f/trained.db", 0},
    {"persistence-random.txt", "persistence --db %f/random.db", 0},
    {"replay.txt", "replay --db %f/trained.db --policy all h2o:recent=10 --budget 0.1,0.2,0.3,0.5,0.75,1.0", 0},
    {"plan.txt", "plan --db %f/trained.db --policy h2o:recent=10 --target-recall 0.95 --allocator greedy -o "
                 "%f/plan.json", 0},
    {"eval.txt", "eval" READ POLICIES " --budget 0.1,0.2,0.5", 0},
    {"eval-4bit.txt", "eval" READ " --policy full h2o:recent=10 --budget 0.2 --kv-bits 4", 0},
    {"drift.txt", "drift --model %f/demo-opt --db %f/trained.db --policy h2o:recent=10 --budget 0.2 --run 1 "
                  "--count 1", 0},
    {"capacity.txt", "capacity --model %f/demo-opt --gpu RTX-4090,H100-SXM --length 512 --db %f/trained.db "
     "--max-ppl-increase 5%%", 0},
    {"simulate.txt", "simulate --model %f/demo-opt --gpu RTX-4090 --rate 50,200 --prompt 400 --output 100 "
                     "--budget 0.2 --db %f/trained.db", 0},
    {"plot.txt", "plot persistence --db %f/trained.db %f/random.db -o %f/persistence.svg", 1},
    {"plot.txt", "plot persistence-grid --db %f/trained.db %f/random.db -o %f/persistence-grid.svg", 1},
    {"plot.txt", "plot heads --db %f/trained.db %f/random.db -o %f/heads.svg", 1},
    {"plot.txt", "plot heatmap --db %f/trained.db -o %f/heatmap.svg", 1},
    {"report.txt",
     "report --db %f/trained.db %f/random.db --plan %f/plan.json --model %f/demo-opt -o %f/report.html", 1},
    {0}};

#undef SIZE
#undef VALUES
#undef READ
#undef POLICIES

#endif
