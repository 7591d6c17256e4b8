/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of the demonstration in their order: commands with % for its folder, and the file that each one's
 * output goes to. */
#ifndef SH_CLI_DEMO_STEPS_H
#define SH_CLI_DEMO_STEPS_H

#define SIZE " --length 512 --count 6"
#define READ " --model %/demo-opt --text %/natural.txt --length 512 --count 4 --db %/trained.db"
#define POLICIES " --policy h2o:recent=10 scissorhands streaming"

struct sh_demo_step {
    const char *output, *line;
    int draws;                          /* is nothing without gnuplot                             */
};

static const struct sh_demo_step sh_demo_steps[] = {
    {"trained-natural.txt", "trace --model %/demo-opt --db %/trained.db --text %/natural.txt" SIZE, 0},
    {"trained-recall.txt", "trace --model %/demo-opt --db %/trained.db --jsonl %/recall.jsonl" SIZE, 0},
    {"random-natural.txt", "trace --model %/demo-opt --db %/random.db --text %/natural.txt" SIZE " "
     "--random-weights", 0},
    {"random-recall.txt", "trace --model %/demo-opt --db %/random.db --jsonl %/recall.jsonl" SIZE " "
     "--random-weights", 0},
    {"persistence-trained.txt", "persistence --db %/trained.db", 0},
    {"persistence-random.txt", "persistence --db %/random.db", 0},
    {"replay.txt", "replay --db %/trained.db --policy all h2o:recent=10 --budget 0.1,0.2,0.3,0.5,0.75,1.0", 0},
    {"plan.txt", "plan --db %/trained.db --policy h2o:recent=10 --target-recall 0.95 --allocator greedy -o "
                 "%/plan.json", 0},
    {"eval.txt", "eval" READ POLICIES " --budget 0.1,0.2,0.5", 0},
    {"eval-4bit.txt", "eval" READ " --policy full h2o:recent=10 --budget 0.2 --kv-bits 4", 0},
    {"drift.txt", "drift --model %/demo-opt --db %/trained.db --policy h2o:recent=10 --budget 0.2 --run 1 "
                  "--count 1", 0},
    {"capacity.txt", "capacity --model %/demo-opt --gpu RTX-4090,H100-SXM --length 512 --db %/trained.db "
     "--max-ppl-increase 5%%", 0},
    {"simulate.txt", "simulate --model %/demo-opt --gpu RTX-4090 --rate 50,200 --prompt 400 --output 100 "
                     "--budget 0.2", 0},
    {"plot.txt", "plot persistence --db %/trained.db %/random.db -o %/persistence.svg", 1},
    {"plot.txt", "plot persistence-grid --db %/trained.db %/random.db -o %/persistence-grid.svg", 1},
    {"plot.txt", "plot heads --db %/trained.db %/random.db -o %/heads.svg", 1},
    {"plot.txt", "plot heatmap --db %/trained.db -o %/heatmap.svg", 1},
    {"report.txt", "report --db %/trained.db %/random.db --plan %/plan.json --model %/demo-opt -o %/report.html", 1},
    {0}};

#undef SIZE
#undef READ
#undef POLICIES

#endif
