/* SPDX-License-Identifier: Apache-2.0 */
/* shears capacity: how many sequences of which length fit on which GPUs, and how fast they could go. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "plots/gp.h"
#include "src/base/mem.h"
#include "src/cli/capacity_ask.h"
#include "src/cli/capacity_names.h"
#include "src/cli/capacity_plan.h"
#include "src/cli/capacity_quality.h"
#include "src/cli/capacity_show.h"
#include "src/cli/commands.h"

#define F(name) offsetof(struct sh_capacity_args, name)
static const struct sh_opt opts[] = {
    {"model", SH_OPT_TEXT, F(model), "NAME,...",
     "of shears info models, a folder with config.json, such a file, a .gguf file, or all", 0, 0, 0},
    {"gpu", SH_OPT_TEXT, F(gpu), "NAME,...", "of shears info gpus, or all", 0, 0, 0},
    {"length", SH_OPT_INT, F(length), "N", "tokens of a sequence, prompt and answer", 1, SH_KV_MOST_TOKENS, 0},
    {"batch", SH_OPT_INT, F(batch), "N", "sequences; without it the largest batch is asked for", 1, 1e9, 0},
    {"kv", SH_OPT_TEXT, F(kv), "TYPE,...", "the cache's format: f32 f16 bf16 f8 int8 int4:group=64:scale=16:zero=16\n"
     "q8_0 q4_0 mxfp4 nvfp4; q8_0+q4_0: keys+values (default: f16)", 0, 0, 0},
    {"weights", SH_OPT_TEXT, F(weights), "TYPE", "the weights' format (default: as published, or as stored)", 0, 0, 0},
    {"tp", SH_OPT_TEXT, F(tp), "N,...", "GPUs that share each layer (default: 1); auto: the fewest for --batch", 0,
     0, 0},
    {"pp", SH_OPT_INT, F(pp), "N", "stages of a pipeline (default: 1)", 1, SH_CAPACITY_STAGES, 0},
    {"ep", SH_OPT_INT, F(ep), "N", "ranks that share experts and have their own sequences (default: 1)", 1, 1024, 0},
    {"budget", SH_OPT_TEXT, F(budget), "B,...", "tokens kept per layer and KV head: 0.2 of the length, 4096, 4+2044\n"
     "(sinks+recent), 64/32/... (each layer), pyramid:96-32", 0, 0, 0},
    {"plan", SH_OPT_TEXT, F(plan), "FILE", "budgets of each layer and head, from shears plan", 0, 0, 0},
    {"db", SH_OPT_TEXT, F(db), "FILE", "budgets that shears eval or replay measured, with what they cost", 0, 0, 0},
    {"max-ppl-increase", SH_OPT_TEXT, F(max_ppl), "F", "the smallest that raises perplexity by at most this, 0.01\n"
     "or 1%", 0, 0, 0},
    {"min-recall", SH_OPT_TEXT, F(min_recall), "F", "the smallest that keeps this share of attention mass", 0, 0, 0},
    {"policy", SH_OPT_TEXT, F(policy), "NAME", "only what was measured with this policy", 0, 0, 0},
    {"headroom", SH_OPT_INT, F(headroom), "N", "tokens that come between two evictions (default: 0)", 0, 1e9, 0},
    {"state", SH_OPT_INT, F(state), "BYTES", "a policy keeps for each kept token, layer and KV head (default: 0)", 0,
     1e6, 0},
    {"windows", SH_OPT_TEXT, F(windows), "HOW", "charge windowed layers: model (default), ignore,\n"
     "vllm:TOKENS or llama:TOKENS in flight", 0, 0, 0},
    {"page", SH_OPT_INT, F(page), "N", "tokens of a page (default: 1)", 1, 1 << 20, 0},
    {"shared-prefix", SH_OPT_INT, F(prefix), "N", "first tokens that all sequences share (default: 0)", 0,
     SH_KV_MOST_TOKENS, 0},
    {"chunk", SH_OPT_INT, F(chunk), "N", "tokens of a prompt at once (default: all; a server's guess: 2048 or 8192)",
     1, 1e9, 0},
    {"draft", SH_OPT_TEXT, F(draft), "MODEL", "a speculative draft model beside it", 0, 0, 0},
    {"memory", SH_OPT_BYTES, F(memory), "BYTES", "of one GPU, in place of the board's", 1, 0x1p62, 0},
    {"util", SH_OPT_REAL, F(util), "F", "share of it that may be used (default: 1)", 0, 1, 0},
    {"reserve", SH_OPT_REAL, F(reserve), "F", "share of it left to the framework: 1 - util", 0, 0.999, 0},
    {"overhead", SH_OPT_BYTES, F(overhead), "BYTES", "taken by the runtime, where it is known (default: 0)", 0, 0, 0},
    {"max-seqs", SH_OPT_INT, F(sampled), "N", "sequences that a server warms up for (its guess: 256 or 1024)", 1,
     1e6, 0},
    {"bandwidth", SH_OPT_REAL, F(bandwidth), "BYTES_PER_S", "of one GPU's memory, in place of the board's", 1, 1e18,
     0},
    {"flops", SH_OPT_REAL, F(flops), "F", "FLOP/s of one GPU, in place of the board's", 1, 1e21, 0},
    {"link", SH_OPT_FLAG, F(link), NULL, "count the time of what GPUs send each other", 0, 0, 0},
    {"price", SH_OPT_REAL, F(price), "USD", "of one GPU and hour", 0, 1e6, 0},
    {"uneven", SH_OPT_FLAG, F(uneven), NULL, "compute tp that does not divide the heads, too", 0, 0, 0},
    {"gpus", SH_OPT_TEXT, F(gpus), "FILE", "rows of your own boards, which come first", 0, 0, 0},
    {"models", SH_OPT_TEXT, F(models), "FILE", "rows of your own models, which come first", 0, 0, 0},
    {"plot-memory", SH_OPT_TEXT, F(plot_memory), "FILE", "draw what memory is used for (.svg, .png or .pdf)", 0, 0, 0},
    {"plot-frontier", SH_OPT_TEXT, F(plot_frontier), "FILE", "draw batch, speed and quality over the budgets", 0, 0, 0},
    {0}};
#undef F

static void preset(void *args)
{
    struct sh_capacity_args *a = args;
    a->kv = "f16";
    a->tp = "1";
    a->windows = "model";
    a->pp = a->ep = a->page = 1;
    a->util = a->reserve = a->bandwidth = a->flops = a->price = -1;
}

/* Everything that is asked: models x boards x tp x formats x budgets. */
struct study {
    const struct sh_capacity_args *args;
    struct sh_capacity_settings settings;
    struct sh_capacity_names names;
    struct sh_kv_shape *model;
    struct sh_board *board;
    struct sh_kv_shape draft;
    int n_model, n_board;
    struct sh_capacity_row *row;
    int n_row;
    struct sh_capacity_answer answer;   /* the last one, whole                                     */
    struct sh_capacity_ask ask;         /* its question                                           */
    uint64_t *layers;                   /* and what its budget points at                           */
    struct sh_plan plan;
    struct sh_quality_point *point;     /* of the store                                           */
    int n_point;
    char **evidence;                    /* lines that rows point at                                */
    int n_evidence;
};

/* One cache that is asked about. */
struct variant {
    const char *budget;
    const struct sh_quality_point *measured;
    int is_plan;
};

static void release(struct study *s)
{
    for (int i = 0; i < s->n_model; i++)
        sh_kv_shape_clear(&s->model[i]);
    sh_kv_shape_clear(&s->draft);
    sh_capacity_names_close(&s->names);
    free(s->model);
    free(s->board);
    free(s->row);
    free(s->layers);
    free(s->point);
    sh_plan_clear(&s->plan);
    for (int i = 0; i < s->n_evidence; i++)
        free(s->evidence[i]);
    free(s->evidence);
}

static int add_model(struct study *s, const char *name, int i, struct sh_err *e)
{
    struct sh_kv_shape one;
    int end = name ? sh_capacity_model(&s->names, name, &one, e) : sh_capacity_model_at(&s->names, i, &one, e);
    if (end)
        return end;
    s->model = xreallocarray(s->model, (size_t)s->n_model + 1, sizeof *s->model);
    s->model[s->n_model++] = one;
    return 0;
}

static int add_board(struct study *s, const char *name, int i, struct sh_err *e)
{
    struct sh_board one;
    int end = name ? sh_capacity_board(&s->names, name, &one, e) : sh_capacity_board_at(&s->names, i, &one, e);
    if (end)
        return end;
    s->board = xreallocarray(s->board, (size_t)s->n_board + 1, sizeof *s->board);
    s->board[s->n_board++] = one;
    return 0;
}

/* The word all, or names with commas. */
static int add_all(struct study *s, const char *option, const char *text,
                   int (*add)(struct study *, const char *, int, struct sh_err *), struct sh_err *e)
{
    struct sh_capacity_words w;
    int end = 0;
    if (!strcasecmp(text, "all")) {
        for (int i = 0; !end; i++)
            end = add(s, NULL, i, e);
        return end < 0 ? -1 : 0;
    }
    if (sh_capacity_split(option, text, &w, e))
        return -1;
    for (int i = 0; i < w.n; i++)
        if (add(s, w.at[i], 0, e))
            return -1;
    return 0;
}

static const char *keep_line(struct study *s, char *line)
{
    s->evidence = xreallocarray(s->evidence, (size_t)s->n_evidence + 1, sizeof *s->evidence);
    return s->evidence[s->n_evidence++] = line;
}

static int answer(struct study *s, const struct sh_capacity_question *q, const struct variant *v, struct sh_err *e)
{
    const char *line = NULL, *budget = v->is_plan ? s->args->plan : q->budget;
    free(s->layers);
    s->layers = NULL;
    if (sh_capacity_ask_fill(s->args, &s->settings, q, &s->ask, &s->layers, e) ||
        (v->is_plan && sh_capacity_plan(&s->plan, s->args->plan, q->shape, q->tp, &s->ask.rule, &s->layers, e)))
        return -1;
    if (v->is_plan)
        line = keep_line(s, sh_capacity_plan_evidence(&s->plan, q->shape->f.name, s->ask.length));
    else if (v->measured)
        line = keep_line(s, sh_quality_text(v->measured, s->args->db, q->shape->f.name, s->ask.length));
    s->answer = (struct sh_capacity_answer){.ask = &s->ask, .board = q->board, .budget = budget, .kv = q->kv,
                                            .evidence = line, .measured = v->measured, .price = s->args->price,
                                            .server = sh_capacity_server(s->args, q->board)};
    return sh_capacity(&s->ask, &s->answer.c, e);
}

static void keep(struct study *s)
{
    s->row = xreallocarray(s->row, (size_t)s->n_row + 1, sizeof *s->row);
    sh_capacity_row(&s->answer, &s->row[s->n_row++]);
}

/* The smallest group of a power of two GPUs that holds the batch; when none does, the largest is shown. */
static int fewest(struct study *s, struct sh_capacity_question *q, const struct variant *v, struct sh_err *e)
{
    int done = 0;
    for (int tp = 1; tp <= 64 && !done; tp *= 2) {
        if (!s->args->uneven && sh_capacity_divides(q->shape, tp, e))
            continue;
        q->tp = tp;
        if (answer(s, q, v, e))
            return -1;
        done = !s->answer.c.unfit;
    }
    keep(s);
    return 0;
}

static int each_tp(struct study *s, struct sh_capacity_question *q, const struct variant *v, struct sh_err *e)
{
    const struct sh_capacity_words *w = &s->settings.tp;
    int many = s->n_model > 1 || w->n > 1;
    if (!strcmp(w->at[0], "auto"))
        return fewest(s, q, v, e);
    for (int i = 0; i < w->n; i++) {
        q->tp = (int)strtol(w->at[i], NULL, 10);
        if (!s->args->uneven && sh_capacity_divides(q->shape, q->tp, e)) {
            if (many)
                continue;               /* of many shapes those that servers take are shown */
            return -1;
        }
        if (answer(s, q, v, e))
            return -1;
        keep(s);
    }
    return 0;
}

static int ask_quality(const struct study *s, const char *kv, struct sh_quality_ask *q, struct sh_err *e)
{
    const struct sh_capacity_args *a = s->args;
    struct sh_kv_rule rule;
    *q = (struct sh_quality_ask){.kind = a->min_recall ? SH_QUALITY_RECALL : SH_QUALITY_PPL, .policy = a->policy,
                                 .length = (uint64_t)a->length};
    if (sh_capacity_kv(kv, &rule, e))
        return -1;
    q->bits = rule.k.bits < rule.v.bits ? rule.k.bits : rule.v.bits;
    q->bits = q->bits > 16 ? 16 : q->bits;
    if (a->max_ppl)
        return sh_quality_share("--max-ppl-increase", a->max_ppl, &q->limit, e);
    return a->min_recall ? sh_quality_share("--min-recall", a->min_recall, &q->limit, e) : 0;
}

/* The caches to ask about under a format: those of --budget, --plan or --db, or the whole one. *out for free(). */
static int variants(struct study *s, const char *kv, struct variant **out, int *n, struct sh_err *e)
{
    const struct sh_capacity_words *w = &s->settings.budget;
    struct sh_quality_ask q;
    struct variant *v = *out = xcalloc((size_t)(s->n_point + w->n + 2), sizeof *v);
    *n = 0;
    v[(*n)] = (struct variant){.is_plan = s->args->plan != NULL};
    for (int i = 0; i < w->n; i++)
        v[(*n)++].budget = w->at[i];
    if (!s->args->db) {
        *n += !w->n;
        return 0;
    }
    if (ask_quality(s, kv, &q, e))
        return -1;
    if (s->args->max_ppl || s->args->min_recall) {
        const struct sh_quality_point *p = sh_quality_least(s->point, s->n_point, s->args->db, &q, e);
        if (!p)
            return -1;
        v[(*n)++] = (struct variant){p->budget, p, 0};
        return 0;
    }
    for (int i = 0; i < s->n_point; i++) {
        q.kind = s->point[i].kind;
        if (sh_quality_fits(&s->point[i], &q))
            v[(*n)++] = (struct variant){s->point[i].budget, &s->point[i], 0};
    }
    return *n ? 0 : sh_fail(e, "%s: no budget was measured there with %d-bit numbers", s->args->db, q.bits);
}

static int each_variant(struct study *s, struct sh_capacity_question q, struct sh_err *e)
{
    struct variant *v;
    int n, bad = variants(s, q.kv, &v, &n, e);
    for (int i = 0; i < n && !bad; i++) {
        q.budget = v[i].budget;
        bad = each_tp(s, &q, &v[i], e);
    }
    free(v);
    return bad;
}

static int each(struct study *s, struct sh_err *e)
{
    const struct sh_capacity_settings *t = &s->settings;
    for (int m = 0; m < s->n_model; m++)
        for (int b = 0; b < s->n_board; b++)
            for (int k = 0; k < t->kv.n; k++) {
                struct sh_capacity_question q = {&s->model[m], s->args->draft ? &s->draft : NULL, &s->board[b],
                                                 t->kv.at[k], NULL, 1};
                if (each_variant(s, q, e))
                    return -1;
            }
    return s->n_row ? 0 : sh_misused(e, "--tp %s divides the heads of none of the models", s->args->tp);
}

/* What fits comes first; with a batch the least memory in all, else the fastest; then as it was asked. */
static int compare(const void *x, const void *y)
{
    const struct sh_capacity_row *a = x, *b = y;
    if (a->fits != b->fits)
        return b->fits - a->fits;
    double left = a->sort, right = b->sort;
    return left < right ? -1 : left > right ? 1 : a->order - b->order;
}

static void sort(struct study *s)
{
    for (int i = 0; i < s->n_row; i++) {
        struct sh_capacity_row *r = &s->row[i];
        double memory = (double)r->memory * r->tp * r->pp * r->ep;
        r->order = i;
        r->sort = s->args->batch ? memory : r->fits ? -r->decode_rate : memory;
    }
    qsort(s->row, (size_t)s->n_row, sizeof *s->row, compare);
}

static int show(struct study *s, const struct sh_common *common, struct sh_err *e)
{
    int is_text = sh_common_format(common) == SH_OUT_TEXT;
    struct sh_out *o = sh_out_new();
    if (s->n_row > 1)
        sort(s);
    if (s->n_row == 1 && is_text) {
        sh_capacity_show_one(o, &s->answer, &s->row[0]);
    } else {
        sh_capacity_show_rows(o, s->row, s->n_row, is_text);
        if (s->n_row == 1)
            sh_capacity_show_lists(o, &s->answer, 0);
        sh_out_end(o);
    }
    int bad = sh_out_write(o, sh_common_format(common), stdout, e);
    sh_out_free(o);
    return bad;
}

static int excludes(const struct sh_capacity_args *a, struct sh_err *e)
{
    if ((a->plan != NULL) + (a->db != NULL) + (a->budget != NULL) > 1)
        return sh_misused(e, "--plan, --db and --budget each say what is kept, expected one of them");
    if (!a->db && (a->max_ppl || a->min_recall || a->policy))
        return sh_misused(e, "%s chooses among what was measured, so it needs --db FILE",
                          a->max_ppl ? "--max-ppl-increase" : a->min_recall ? "--min-recall" : "--policy");
    if (a->max_ppl && a->min_recall)
        return sh_misused(e, "--max-ppl-increase and --min-recall are two measures, expected one of them");
    return 0;
}

/* A figure that cannot be written is told before the work. */
static int probe(const char *path, struct sh_err *e)
{
    struct sh_gp gp;
    if (path && sh_gp_open(&gp, path, 0, 0, 0, e))
        return -1;
    if (path)
        sh_gp_abandon(&gp);
    return 0;
}

static int draw(const struct study *s, struct sh_err *e)
{
    const struct sh_capacity_args *a = s->args;
    return (a->plot_memory && sh_capacity_plot_memory(s->row, s->n_row, a->plot_memory, e)) ||
           (a->plot_frontier && sh_capacity_plot_frontier(s->row, s->n_row, a->plot_frontier, e)) ? -1 : 0;
}

static int run(const struct sh_common *common, void *args, const struct sh_list *positional, struct sh_err *e)
{
    struct sh_capacity_args *a = args;
    if (positional->n)
        return sh_misused(e, "capacity: \"%.80s\" belongs to no option", positional->at[0]);
    if (!a->model || !a->gpu || !a->length)
        return sh_misused(e, "capacity needs --model NAME, --gpu NAME and --length N");
    if (excludes(a, e) || probe(a->plot_memory, e) || probe(a->plot_frontier, e))
        return -1;
    struct study s = {.args = a};
    a->has_plan = a->plan || a->db;
    int bad = sh_capacity_settings(a, &s.settings, e) || sh_capacity_names_open(&s.names, a->gpus, a->models, e) ||
              add_all(&s, "--model", a->model, add_model, e) || add_all(&s, "--gpu", a->gpu, add_board, e) ||
              (a->draft && sh_capacity_model(&s.names, a->draft, &s.draft, e)) ||
              (a->plan && sh_plan_read(&s.plan, a->plan, e)) ||
              (a->db && sh_quality_read(a->db, &s.point, &s.n_point, e)) || each(&s, e) || draw(&s, e) ||
              show(&s, common, e);
    release(&s);
    return bad ? -1 : 0;
}

const struct sh_cmd sh_cmd_capacity = {
    .name = "capacity",
    .usage = "--model NAME|DIR|config.json --gpu NAME|all --length N [--batch N] [--kv TYPE] [--budget B] …",
    .summary = "what fits on a GPU with how much of the cache, and how fast it could go",
    .about = "Weights, cache and limits in exact bytes, each term shown; the largest batch at a length, the largest\n"
             "length at a batch, and the least time of a step by bandwidth and compute (an upper bound of speed).\n"
             "Lists with commas give one table of all combinations: what fits first, then the fastest, or with\n"
             "--batch the smallest. What does not fit is an answer: batch 0, the term named, and how much is missing.\n"
             "What a server takes besides is a range with its source, and not part of the exact sum.\n\n"
             "  shears capacity --model llama-3.1-8b --gpu H100-SXM --length 131072 --util 0.9 --budget 4096\n"
             "  shears capacity --model llama-3.1-70b --gpu all --tp auto --length 8192 --batch 16\n"
             "  shears capacity --model opt-6.7b --gpu A100-SXM-80GB --length 2048 --db book.db --max-ppl-increase 1%",
    .opts = opts,
    .args_bytes = sizeof(struct sh_capacity_args),
    .preset = preset,
    .run = run,
};
