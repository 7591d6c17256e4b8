/* SPDX-License-Identifier: Apache-2.0 */
/* The policy itself describes what the device does for it (sh_policy_device). */
#include "src/engine/host_cache.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/engine/states.h"

struct sh_device_cache {
    struct sh_resident *r;
    struct sh_slots_setup setup;
    int length;                         /* sh_own_attention's                                     */
    struct sh_slots_head *head;         /* [setup.n_layer * n_kv_head]                            */
    int first_layer;                    /* the cache's layer 0 is this one of the model           */
    float *slopes;                      /* [n_head]; NULL: none                                   */
    struct sh_slots *slots;
    int *rows, *rows_at;                /* host, device: [n_seq + 1] starts, then each row's position */
    int *start, *first;                 /* host: of the piece                                     */
    int *length_read;                   /* [n_seq]: tokens of each text so far                    */
    struct sh_slots_count *count;       /* [n_seq * n_layer * n_kv_head]                          */
    int by_block;                       /* the piece is one                                       */
    struct sh_graph **graph;            /* [n_seq + 1]: the layers of steps of one row a sequence, by their rows */
    unsigned char *has_run;             /* [n_seq + 1]: such a step has; both NULL: no graphs     */
    int is_eager;                       /* no more graphs: the device could not record one        */
    sh_watch *watch;             /* of the piece                                           */
    void *watch_to;
    int *pos;                           /* of a look: [most capacity]                             */
    float *row;
    int most_slots, peak;               /* of a head: there are; in use before a restart, at most  */
    struct sh_err error;                /* where slots is NULL                                    */
};

/* ---- what the device is told ---- */

/* KV heads of the cache's layers. */
static int heads_of(const struct sh_session_setup *s)
{
    return sh_kv_setup_layers(s) * s->arch->n_kv_head;
}

/* The budget and slots of each head are kept_slots.c's. */
static int fill_heads(const struct sh_session_setup *s, struct sh_slots_head *head)
{
    const struct sh_arch *a = s->arch;
    int in_order = 0;
    for (int i = 0; i < heads_of(s); i++) {
        int layer = s->first_layer + i / a->n_kv_head, budget = s->budget[s->first_layer * a->n_kv_head + i];
        struct sh_kept_setup kept = {.spec = s->spec, .budget = budget, .prefill = s->prefill,
                                     .window = sh_arch_window(a, layer), .n_token = s->n_token,
                                     .capacity = s->whole ? -1 : 0, .layer = layer};
        if (i % a->n_kv_head >= sh_arch_kv_heads(a, layer)) {       /* the layer has no such head: nothing comes */
            head[i] = (struct sh_slots_head){.budget = INT_MAX, .capacity = 1};
            continue;
        }
        head[i] = (struct sh_slots_head){.budget = sh_kept_room(&kept), .window = kept.window};
        head[i].capacity = sh_kept_slots(&kept);
        head[i].recent = sh_policy_recent(s->spec, head[i].budget);
        head[i].drop = sh_policy_drop(s->spec, head[i].budget);
        in_order += head[i].budget >= s->n_token;
    }
    return in_order;
}

static struct sh_slots_setup setup_of(const struct sh_session_setup *s, const struct sh_slots_head *head,
                                      const float *slopes)
{
    const struct sh_arch *a = s->arch;
    struct sh_slots_setup to = {.n_seq = s->n_seq, .n_layer = sh_kv_setup_layers(s), .n_head = a->n_head,
                                .n_kv_head = a->n_kv_head, .d_head = a->d_head, .bits = s->format.bits,
                                .group = s->format.group, .meta = s->format.meta, .prefill = s->prefill,
                                .block = s->block, .keep_rows = s->watched, .head = head, .slopes = slopes};
    sh_policy_device(s->spec, s->n_token, &to.policy);
    return to;
}

/* Slots of a sequence, and words of the rows that its policy looks back on, as far as the device numbers them. */
static int is_too_large(const struct sh_session_setup *s, const struct sh_slots_head *head,
                        const struct sh_slots_policy *p)
{
    enum { A_WORD = 32, MOST_SEQUENCES = 65535 };       /* as many as a launch has blocks to the side */
    long long slots = 0, words = 0;
    for (int i = 0; i < heads_of(s); i++) {
        slots += head[i].capacity + A_WORD;             /* the device rounds up */
        words += (head[i].capacity / A_WORD + 1LL) * (p->rule == SH_SLOTS_LOW_RING ? p->look_back : 0);
    }
    return slots > INT_MAX || words > INT_MAX || s->n_seq > MOST_SEQUENCES;
}

const char *sh_device_cache_why_not(const struct sh_resident *r, const struct sh_session_setup *s,
                                    char text[SH_DEVICE_WHY])
{
    const struct sh_arch *a = s->arch;
    struct sh_slots_policy policy;
    if (r->is_host)
        return NULL;
    const char *why = sh_policy_device(s->spec, s->n_token, &policy);
    struct sh_slots_head *head = xcalloc((size_t)heads_of(s), sizeof *head);
    int in_order = fill_heads(s, head), too_large = is_too_large(s, head, &policy);
    free(head);
    if (!r->setup.backend->slots)
        why = "the backend has no cache";
    else if (a->d_head > SH_SLOTS_WIDEST || sh_arch_widest_group(a) > SH_SLOTS_MOST_GROUP)
        why = "its heads are too wide or too many";
    else if (a->flags & (SH_HAS_SINKS | SH_CHUNKED | SH_ROUNDS_SLOPES))
        why = "its scores have sinks, chunks or rounded slopes";
    else if (sh_arch_widths_differ(a))
        why = "its layers differ in the width of their heads";
    else if (too_large)
        why = "it has more sequences, slots or rows to remember than the device can number";
    else if (s->positions != SH_POSITIONS_ORIGINAL)
        why = "positions are those in the cache (--positions cache)";
    else if (!why && s->format.bits < 16 && (in_order || s->format.by_channel))
        why = in_order ? "in a cache that never evicts, codes of keys share scales across slots"
                       : "with --kv-keys channel, codes of keys share scales across slots";
    if (!why)
        return NULL;
    snprintf(text, SH_DEVICE_WHY, "%s: %s", s->spec->policy->name, why);
    return text;
}

/* ---- the object ---- */

/* Rows of a text that go through a layer at once, of a cache of some layers; else 0: not known. */
static int rows_of_text(const struct sh_session_setup *s)
{
    return s->n_layer ? s->n_token : 0;
}

/* What the operations of a step of so many rows take for themselves, at most, when they first run. */
static size_t step_bytes(const struct sh_resident *r, const struct sh_slots_setup *s, int rows)
{
    const struct sh_arch *a = r->arch;
    const struct sh_resident_setup *u = &r->setup;
    int q = a->n_head * a->d_head, ff = sh_arch_widest_ff(a), start[] = {0, rows};
    const int shape[][2] = {{a->d_model, q}, {q, a->d_model}, {a->d_model, ff}, {ff, a->d_model}};
    int in = 0, out = 0;                /* the widest: of scratch that grows, each part stays as large as it was */
    size_t attend = 0, narrow = 0;
    int bits = sh_layer_scratch_bits(u->backend, u->model, u->dtype, u->weight_bits);
    size_t panel = u->backend->linear_bytes(u->device, 0, a->d_model, a->n_vocab, u->dtype, bits);     /* of the head */
    for (int i = 0; i < 4; i++) {
        size_t own = u->backend->linear_bytes(u->device, 0, shape[i][0], shape[i][1], u->dtype, bits);
        panel = own > panel ? own : panel;
        in = shape[i][0] > in ? shape[i][0] : in;
        out = shape[i][1] > out ? shape[i][1] : out;
    }
    size_t most = panel + u->backend->linear_bytes(u->device, rows, in, out, u->dtype, bits) -
                  u->backend->linear_bytes(u->device, 0, in, out, u->dtype, bits);
    for (int l = 0; l < a->n_layer && s->policy.rule == SH_SLOTS_OLDEST && s->bits == 32; l++) {
        if (!sh_arch_attends(a, l))
            continue;
        struct sh_attend w = sh_layer_attend(a, l, rows, u->dtype);
        w.out.at = r->act.mixed;        /* wanted: what it gives, not the probabilities alone */
        w.n_seq = 1;
        w.start = start;
        size_t n = u->backend->attend_bytes(u->device, &w);
        attend = n > attend ? n : attend;
    }
    if (a->d_embed != a->d_model)
        narrow = (size_t)rows * (size_t)a->d_embed * sizeof(float);
    return most + attend + narrow;
}

/* Bytes that a cache of so many sequences takes of the device, and the steps over it. */
static size_t bytes_for(const struct sh_resident *r, const struct sh_slots_setup *setup, int each, int n_seq)
{
    long long all = (long long)each * n_seq;
    int rows = each && all < r->setup.rows ? (int)all : r->setup.rows;
    struct sh_slots_setup s = *setup;
    s.n_seq = n_seq;
    struct sh_slots_bytes b = r->setup.backend->slots->bytes(&s);
    size_t cache = b.rows + b.meta + b.positions + b.policy + b.scratch + b.block;
    int recurrent = 0;
    size_t states = 0;
    for (int l = 0; l < r->arch->n_layer && recurrent < s.n_layer; l++) {
        recurrent += sh_arch_recurs(r->arch, l);
        states += (size_t)n_seq * sh_arch_state(r->arch, l) * sizeof(float);
    }
    return cache + states + step_bytes(r, setup, rows) + (1 << 14);   /* allocations are rounded up */
}

static int fit(const struct sh_resident *r, const struct sh_slots_setup *setup, int each, int most)
{
    struct sh_props props;
    int low = 0, high = most;
    r->setup.backend->props(r->setup.device, &props);
    while (low < high) {
        int middle = low + (high - low + 1) / 2;
        if (bytes_for(r, setup, each, middle) <= props.memory_bytes)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

int sh_device_cache_fit(const struct sh_resident *r, const struct sh_session_setup *s, int most)
{
    struct sh_slots_head *head = xcalloc((size_t)heads_of(s), sizeof *head);
    float *slopes = sh_arch_slopes(s->arch);
    fill_heads(s, head);
    struct sh_slots_setup setup = setup_of(s, head, slopes);
    int n = fit(r, &setup, rows_of_text(s), most);
    free(slopes);
    free(head);
    return n;
}

/* The largest budget of every head that would do, by halving. */
static int largest_budget(const struct sh_resident *r, const struct sh_slots_setup *setup, int each)
{
    struct sh_slots_setup s = *setup;
    int n = s.n_layer * s.n_kv_head, low = 0, high = 0;
    struct sh_slots_head *head = xcalloc((size_t)n, sizeof *head);
    for (int i = 0; i < n; i++)
        high = setup->head[i].capacity > high ? setup->head[i].capacity : high;
    s.head = head;
    while (low < high) {
        int middle = low + (high - low + 1) / 2;
        for (int i = 0; i < n; i++) {
            head[i] = setup->head[i];
            head[i].capacity = head[i].capacity < middle ? head[i].capacity : middle;
        }
        if (fit(r, &s, each, s.n_seq) == s.n_seq)
            low = middle;
        else
            high = middle - 1;
    }
    free(head);
    return low;
}

/* Is a step the same work each time, and all of it the device's? Not where tokens choose experts or layers have states,
 * nor where the host computes the shares of residual streams or what keys add to scores, nor where rotary tables follow
 * what has come, or a text's length: another session of the resident may have filled them for its own. */
static void make_graphs(struct sh_device_cache *c)
{
    const struct sh_arch *a = c->r->arch;
    size_t n = (size_t)c->setup.n_seq + 1;
    int differs = sh_arch_follows_length(a) || a->mix.n || a->recurrent.n_v || a->streams.n > 1 ||
                  a->has_key_bias;
    if (!c->r->setup.backend->graph || differs)
        return;
    c->graph = xcalloc(n, sizeof *c->graph);
    c->has_run = xcalloc(n, sizeof *c->has_run);
}

static int refuse(const struct sh_device_cache *c, int each, int evicts, struct sh_err *e)
{
    const struct sh_slots_setup *s = &c->setup;
    struct sh_props props;
    char others[60] = "";
    c->r->setup.backend->props(c->r->setup.device, &props);
    int most = fit(c->r, s, each, s->n_seq), budget = largest_budget(c->r, s, each);
    if (most)
        snprintf(others, sizeof others, ": at most %d sequence%s with this budget", most, most == 1 ? "" : "s");
    sh_fail(e, "the KV cache of %d sequence%s and one step need %zu bytes, but the device has %zu left%s",
            s->n_seq, s->n_seq == 1 ? "" : "s", bytes_for(c->r, s, each, s->n_seq), props.memory_bytes, others);
    if (budget > 0)
        sh_hint(e, "%sa budget of %d tokens per head fits if the prefill is no longer than that",
                evicts ? "" : "with a --policy that evicts, ", budget);
    return -1;
}

struct sh_device_cache *sh_device_cache_new(struct sh_resident *r, const struct sh_session_setup *s, struct sh_err *e)
{
    const struct sh_backend *b = r->setup.backend;
    struct sh_device_cache *c = xcalloc(1, sizeof *c);
    size_t n_seq = (size_t)s->n_seq, rows = (size_t)r->setup.rows, most = 0;
    c->r = r;
    c->length = s->length;
    c->first_layer = s->first_layer;
    c->head = xcalloc((size_t)heads_of(s), sizeof *c->head);
    c->slopes = sh_arch_slopes(s->arch);
    fill_heads(s, c->head);
    c->setup = setup_of(s, c->head, c->slopes);
    for (int i = 0; i < heads_of(s); i++)
        most = (size_t)c->head[i].capacity > most ? (size_t)c->head[i].capacity : most;
    c->most_slots = (int)most;
    c->rows = xcalloc(n_seq + 1 + rows, sizeof *c->rows);
    c->start = xcalloc(n_seq + 1, sizeof *c->start);
    c->first = xcalloc(n_seq, sizeof *c->first);
    c->length_read = xcalloc(n_seq, sizeof *c->length_read);
    c->count = xcalloc(n_seq * (size_t)heads_of(s), sizeof *c->count);
    c->pos = xcalloc(most, sizeof *c->pos);
    c->row = xcalloc(most, sizeof *c->row);
    int each = rows_of_text(s);
    int bad = fit(r, &c->setup, each, s->n_seq) < s->n_seq &&
              refuse(c, each, strcmp(s->spec->policy->name, "full") != 0, e);
    if (!bad)
        bad = !(c->rows_at = b->alloc(r->setup.device, (n_seq + 1 + rows) * sizeof *c->rows, e)) ||
              !(c->slots = b->slots->make(r->setup.device, &c->setup, e));
    if (bad) {
        sh_device_cache_free(c);
        return NULL;
    }
    make_graphs(c);
    return c;
}

void sh_device_cache_free(struct sh_device_cache *c)
{
    if (!c)
        return;
    const struct sh_resident_setup *r = &c->r->setup;
    for (int i = 0; i <= c->setup.n_seq && c->graph; i++)
        r->backend->graph->drop(r->device, c->graph[i]);
    if (c->slots)
        r->backend->slots->drop(r->device, c->slots);
    r->backend->release(r->device, c->rows_at);
    free(c->head);
    free(c->slopes);
    free(c->graph);
    free(c->has_run);
    free(c->rows);
    free(c->start);
    free(c->first);
    free(c->length_read);
    free(c->count);
    free(c->pos);
    free(c->row);
    free(c);
}

/* Slots that a head of the sequence has in use, at most; -1: only the device knows. A head that has had fewer tokens
 * than its budget has lost none, and none has had more. */
static int known_slots(const struct sh_device_cache *c, int sequence)
{
    int n = c->length_read[sequence], known = n == 0;
    for (int i = 0; i < c->setup.n_layer * c->setup.n_kv_head && !known; i++)
        known = n < c->head[i].budget;
    return known ? n : -1;
}

void sh_device_cache_restart(struct sh_device_cache *c, int sequence)
{
    int most = known_slots(c, sequence);
    if (most < 0 && c->length_read[sequence] > c->peak && c->peak < c->most_slots) {
        c->r->setup.backend->slots->count(c->r->setup.device, c->slots, sequence, 1, c->count);
        for (int i = 0; i < c->setup.n_layer * c->setup.n_kv_head; i++)
            most = c->count[i].n_slot > most ? c->count[i].n_slot : most;
    }
    c->peak = most > c->peak ? most : c->peak;
    c->length_read[sequence] = 0;
    c->r->setup.backend->slots->restart(c->r->setup.device, c->slots, sequence);
}

void sh_device_cache_copy(struct sh_device_cache *to, int sequence_to, const struct sh_device_cache *from,
                          int sequence_from)
{
    to->length_read[sequence_to] = from->length_read[sequence_from];
    to->r->setup.backend->slots->copy(to->r->setup.device, to->slots, sequence_to, from->slots, sequence_from);
}

void sh_device_cache_keep_rows(struct sh_device_cache *c)
{
    const struct sh_resident_setup *r = &c->r->setup;
    if (c->setup.keep_rows)
        return;
    c->setup.keep_rows = 1;
    for (int i = 0; i <= c->setup.n_seq && c->graph; i++) {
        r->backend->graph->drop(r->device, c->graph[i]);        /* it works on what goes now */
        c->graph[i] = NULL;
    }
    r->backend->slots->drop(r->device, c->slots);
    c->slots = r->backend->slots->make(r->device, &c->setup, &c->error);
}

/* ---- steps ---- */

/* What the kernels need to know of a piece. */
static int begin(struct sh_device_cache *c, const struct sh_piece *p, struct sh_err *e)
{
    const struct sh_resident_setup *r = &c->r->setup;
    const int *start = p->start, *first = p->first;
    if (!c->slots) {
        *e = c->error;
        return -1;
    }
    int n = c->setup.n_seq, *position = c->rows + n + 1;
    c->by_block = p->by_block;
    c->watch = p->watch;
    c->watch_to = p->watch_to;
    memcpy(c->start, start, (size_t)(n + 1) * sizeof *start);
    memcpy(c->first, first, (size_t)n * sizeof *first);
    memcpy(c->rows, start, (size_t)(n + 1) * sizeof *start);
    for (int i = 0; i < n; i++)
        for (int row = start[i]; row < start[i + 1]; row++) {
            position[row] = first[i] + row - start[i];
            c->length_read[i] = position[row] + 1;
        }
    r->backend->put(r->device, c->rows_at, c->rows, (size_t)(n + 1 + start[n]) * sizeof *c->rows);
    return 0;
}

static const int *positions(const struct sh_device_cache *c)
{
    return c->rows_at + c->setup.n_seq + 1;
}

static int most_rows(const struct sh_device_cache *c)
{
    int most = 0;
    for (int i = 0; i < c->setup.n_seq; i++)
        most = c->start[i + 1] - c->start[i] > most ? c->start[i + 1] - c->start[i] : most;
    return most;
}

/* Do the rows begin their texts, with all that a query of theirs sees among them, and does the policy not look
 * at rows? Then the backend's own attention gives the same, and faster. */
static int is_fresh(const struct sh_device_cache *c, int layer, int window)
{
    const struct sh_slots_setup *s = &c->setup;
    if (s->policy.rule != SH_SLOTS_OLDEST || s->bits < 32 || most_rows(c) < 2)
        return 0;
    for (int i = 0; i < s->n_seq; i++) {
        int n = c->start[i + 1] - c->start[i];
        for (int h = 0; h < s->n_kv_head && n; h++) {
            int budget = c->head[(layer - c->first_layer) * s->n_kv_head + h].budget;
            if (c->first[i] || (n > budget && n > s->prefill && budget != window))
                return 0;
        }
    }
    return 1;
}

/* One head's row, as `watch` wants it. */
static void show_row(const struct sh_device_cache *c, int sequence, int layer, int head, int t,
                     const struct sh_slots_look *look)
{
    struct sh_cache seen = {.n_slot = look->n_slot, .n = look->n, .pos = look->pos, .d_head = c->setup.d_head,
                            .rows_by_slot = 1};
    c->watch(c->watch_to, sequence, layer, head, t, &seen, look->row);
}

/* Shows the newest row of every head of the layer. */
static void show(const struct sh_device_cache *c, int layer, int number)
{
    const struct sh_resident_setup *r = &c->r->setup;
    for (int i = 0; i < c->setup.n_seq; i++)
        for (int h = 0; h < sh_arch_kv_heads(c->r->arch, layer) && number < c->start[i + 1] - c->start[i]; h++) {
            struct sh_slots_look look = {.pos = c->pos, .row = c->row};
            r->backend->slots->look(r->device, c->slots, i, layer - c->first_layer, h, &look);
            show_row(c, i, layer, h, c->first[i] + number, &look);
        }
}

struct shown { const struct sh_device_cache *c; int sequence, layer; };

static void show_block_row(void *to, int head, int t, const struct sh_slots_look *seen)
{
    const struct shown *s = to;
    show_row(s->c, s->sequence, s->layer, head, t, seen);
}

static void attend_blocks(struct sh_device_cache *c, int layer, const struct sh_attend *what)
{
    const struct sh_resident_setup *r = &c->r->setup;
    for (int i = 0; i < c->setup.n_seq; i++) {
        struct shown shown = {c, i, layer};
        struct sh_slots_block b = {.what = what, .layer = layer - c->first_layer, .sequence = i, .row = c->start[i],
                                   .n = c->start[i + 1] - c->start[i], .first = c->first[i],
                                   .look = c->watch ? show_block_row : NULL, .to = &shown};
        if (b.n)
            r->backend->slots->block(r->device, c->slots, &b);
    }
}

/* sh_own_attention's. */
static void attend(void *to, int layer, const struct sh_attend *what)
{
    struct sh_device_cache *c = to;
    const struct sh_resident_setup *r = &c->r->setup;
    struct sh_slots_step step = {.what = what, .layer = layer - c->first_layer, .start = c->rows_at,
                                 .position = positions(c), .end = most_rows(c)};
    if (c->by_block) {
        attend_blocks(c, layer, what);
        return;
    }
    if (!c->watch && is_fresh(c, layer, what->window)) {
        sh_resident_attend(c->r, what, c->setup.n_seq, c->start);
        r->backend->slots->store(r->device, c->slots, &step);
        return;
    }
    for (int i = 0, n = most_rows(c); i < n; i++) {
        step.first = i;
        step.end = i + 1;
        r->backend->slots->attend(r->device, c->slots, &step);
        if (c->watch)
            show(c, layer, i);
    }
}

static void run_layers(struct sh_device_cache *c, void *hidden, const struct sh_piece *p,
                       struct sh_own_attention *own)
{
    struct sh_resident *r = c->r;
    for (int l = c->first_layer; l < c->first_layer + c->setup.n_layer; l++) {
        own->state = sh_states_of(p->states, l);
        sh_layer_run(r->layer[l], &r->act, hidden, c->setup.n_seq, p->start, NULL, 0, own);
    }
}

/* A graph of the layers; NULL: there is none, and they have not run. */
static struct sh_graph *record(struct sh_device_cache *c, const struct sh_piece *p, struct sh_own_attention *own)
{
    const struct sh_resident_setup *r = &c->r->setup;
    struct sh_graph *made = NULL;
    if (!r->backend->graph->begin(r->device)) {
        run_layers(c, c->r->hidden, p, own);
        made = r->backend->graph->end(r->device);
    }
    if (made)
        return made;
    struct sh_props props;              /* the device records no more, or has failed: its sync says that */
    c->is_eager = 1;
    r->backend->props(r->device, &props);
    if (props.why_eager[0] && r->on_eager)
        r->on_eager(r->to, props.why_eager);
    return NULL;
}

int sh_device_cache_run(struct sh_device_cache *c, void *hidden, const struct sh_piece *p, struct sh_err *e)
{
    struct sh_resident *r = c->r;
    struct sh_own_attention own = {.first = p->first, .position = positions(c), .length = c->length,
                                   .attend = attend, .to = c};
    int rows = p->start[c->setup.n_seq];
    if (begin(c, p, e))
        return -1;
    int repeats = c->graph && hidden == r->hidden && !p->watch && !p->by_block && most_rows(c) <= 1;
    if (repeats && c->has_run[rows] && !c->graph[rows] && !c->is_eager)
        c->graph[rows] = record(c, p, &own);
    if (repeats && c->graph[rows])
        r->setup.backend->graph->run(r->setup.device, c->graph[rows]);
    else
        run_layers(c, hidden, p, &own);
    if (repeats)
        c->has_run[rows] = 1;
    for (int l = c->first_layer; l < c->first_layer + c->setup.n_layer; l++)
        if (sh_layer_failed(r->layer[l], e))
            return -1;
    return 0;
}

/* ---- what it takes ---- */

struct sh_cache_bytes sh_device_cache_bytes(const struct sh_device_cache *c)
{
    struct sh_slots_bytes b = c->r->setup.backend->slots->bytes(&c->setup);
    return (struct sh_cache_bytes){.rows = b.rows, .meta = b.meta, .positions = b.positions, .policy = b.policy,
                                .scratch = b.scratch, .block = b.block};
}

struct sh_kv_kept sh_device_cache_kept(const struct sh_device_cache *c)
{
    const struct sh_slots_setup *s = &c->setup;
    struct sh_kv_kept k = {.peak = c->peak};
    int heads = s->n_layer * s->n_kv_head, all = 0;
    c->r->setup.backend->slots->count(c->r->setup.device, c->slots, 0, s->n_seq, c->count);
    for (int i = 0; i < s->n_seq * heads; i++) {
        if (c->head[i % heads].budget == INT_MAX)
            continue;
        all++;
        k.kept += c->count[i].n;
        k.budget += c->head[i % heads].budget;
        k.peak = c->count[i].n_slot > k.peak ? c->count[i].n_slot : k.peak;
    }
    k.kept /= all ? all : 1;
    k.budget /= all ? all : 1;
    return k;
}
