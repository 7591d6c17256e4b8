/* SPDX-License-Identifier: Apache-2.0 */
/* See gguf_tensors.h: a family's tables for the tensors of GGUF files. */
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/base/team.h"
#include "src/model/coded.h"
#include "src/model/files/gguf_tensors.h"

#define BLOCK "blk.#."

static const char *const names[SH_N_ROLE] = {
    [SH_TOK_EMBED] = "token_embd.weight", [SH_POS_EMBED] = "position_embd.weight",
    [SH_FINAL_NORM_W] = "output_norm.weight", [SH_FINAL_NORM_B] = "output_norm.bias", [SH_HEAD] = "output.weight",
    [SH_EMBED_NORM_W] = "token_embd_norm.weight", [SH_EMBED_NORM_B] = "token_embd_norm.bias",
    [SH_ATTN_NORM_W] = BLOCK "attn_norm.weight", [SH_ATTN_NORM_B] = BLOCK "attn_norm.bias",
    [SH_Q_W] = BLOCK "attn_q.weight", [SH_Q_B] = BLOCK "attn_q.bias", [SH_K_W] = BLOCK "attn_k.weight",
    [SH_K_B] = BLOCK "attn_k.bias", [SH_V_W] = BLOCK "attn_v.weight", [SH_V_B] = BLOCK "attn_v.bias",
    [SH_O_W] = BLOCK "attn_output.weight", [SH_O_B] = BLOCK "attn_output.bias",
    [SH_MLP_NORM_W] = BLOCK "ffn_norm.weight", [SH_MLP_NORM_B] = BLOCK "ffn_norm.bias",
    [SH_UP_W] = BLOCK "ffn_up.weight", [SH_UP_B] = BLOCK "ffn_up.bias", [SH_DOWN_W] = BLOCK "ffn_down.weight",
    [SH_DOWN_B] = BLOCK "ffn_down.bias", [SH_GATE_W] = BLOCK "ffn_gate.weight", [SH_GATE_B] = BLOCK "ffn_gate.bias",
    [SH_Q_NORM_W] = BLOCK "attn_q_norm.weight", [SH_K_NORM_W] = BLOCK "attn_k_norm.weight",
    [SH_Q_NORM_B] = BLOCK "attn_q_norm.bias", [SH_K_NORM_B] = BLOCK "attn_k_norm.bias",
    [SH_ATTN_POST_W] = BLOCK "post_attention_norm.weight", [SH_MLP_POST_W] = BLOCK "post_ffw_norm.weight",
    [SH_HEAD_B] = "output.bias", [SH_ATTN_GATE_W] = BLOCK "attn_gate.weight", [SH_SINKS] = BLOCK "attn_sinks.weight",
    [SH_Q_A_W] = BLOCK "attn_q_a.weight", [SH_Q_A_NORM_W] = BLOCK "attn_q_a_norm.weight",
    [SH_Q_B_W] = BLOCK "attn_q_b.weight", [SH_KV_A_W] = BLOCK "attn_kv_a_mqa.weight",
    [SH_KV_A_NORM_W] = BLOCK "attn_kv_a_norm.weight", [SH_KV_B_W] = BLOCK "attn_kv_b.weight",
    [SH_ROUTER_W] = BLOCK "ffn_gate_inp.weight", [SH_ROUTER_B] = BLOCK "ffn_gate_inp.bias",
    [SH_ROUTER_CHOICE] = BLOCK "exp_probs_b.bias",
    [SH_EXPERT_GATE_W] = BLOCK "ffn_gate_exps.weight", [SH_EXPERT_GATE_B] = BLOCK "ffn_gate_exps.bias",
    [SH_EXPERT_UP_W] = BLOCK "ffn_up_exps.weight", [SH_EXPERT_UP_B] = BLOCK "ffn_up_exps.bias",
    [SH_EXPERT_DOWN_W] = BLOCK "ffn_down_exps.weight", [SH_EXPERT_DOWN_B] = BLOCK "ffn_down_exps.bias",
    [SH_SHARED_GATE_W] = BLOCK "ffn_gate_shexp.weight", [SH_SHARED_UP_W] = BLOCK "ffn_up_shexp.weight",
    [SH_SHARED_DOWN_W] = BLOCK "ffn_down_shexp.weight", [SH_SHARED_SCALE_W] = BLOCK "ffn_gate_inp_shexp.weight",
    [SH_LAYER_SCALE] = BLOCK "layer_output_scale.weight", [SH_ROUTER_NORM_W] = BLOCK "ffn_gate_inp.scale",
    [SH_EXPERT_SCALE] = BLOCK "ffn_down_exps.scale", [SH_EXPERT_NORM_W] = BLOCK "pre_ffw_norm_2.weight",
    [SH_MLP_POST_1_W] = BLOCK "post_ffw_norm_1.weight", [SH_MLP_POST_2_W] = BLOCK "post_ffw_norm_2.weight",
    [SH_ACT_AP] = BLOCK "xielu.alpha_p", [SH_ACT_AN] = BLOCK "xielu.alpha_n", [SH_ACT_BETA] = BLOCK "xielu.beta",
    [SH_ACT_EPS] = BLOCK "xielu.eps"};

/* The latent's product in halves, after the whole (model.c binds what is there). */
static const struct sh_param halves[] = {
    {.role = SH_K_B_W, .name = BLOCK "attn_k_b.weight", .rows = SH_DIM_KV_RANK, .cols = SH_DIM_NOPE,
     .form = SH_WHOLE_NAME, .count = SH_DIM_HEADS},
    {.role = SH_V_B_W, .name = BLOCK "attn_v_b.weight", .rows = SH_DIM_VALUE, .cols = SH_DIM_KV_RANK,
     .form = SH_WHOLE_NAME, .count = SH_DIM_HEADS}};
enum { HALVES = sizeof halves / sizeof *halves, FUSED = 8 };

static const char *const no_prefix[] = {"", NULL};

static const struct sh_param *find(const struct sh_family *f, enum sh_role role)
{
    for (const struct sh_param *p = f->params; p->name; p++)
        if (p->role == role)
            return p;
    return NULL;
}

static int is_one_tensor(const struct sh_family *f, enum sh_role a, enum sh_role b)
{
    const struct sh_param *x = find(f, a), *y = find(f, b);
    return x && y && !strcmp(x->name, y->name);
}

/* NULL: the files do not have it. */
static const char *name_of(const struct sh_family *f, const struct sh_param *p)
{
    enum sh_role role = p->role;
    for (const struct sh_gguf_name *own = f->gguf ? f->gguf->names : NULL; own && own->name; own++)
        if (own->role == (int)role && (!own->needs || (p->needs & own->needs) == own->needs))
            return own->name;
    int is_weight = role == SH_Q_W || role == SH_K_W || role == SH_V_W;
    int is_bias = role == SH_Q_B || role == SH_K_B || role == SH_V_B;
    if ((is_weight || is_bias) && is_one_tensor(f, SH_Q_W, SH_K_W))
        return is_weight ? BLOCK "attn_qkv.weight" : BLOCK "attn_qkv.bias";
    return role == SH_GATE_W && is_one_tensor(f, SH_GATE_W, SH_UP_W) ? names[SH_UP_W] : names[role];
}

/* Queries and their gates stay head by head in a tensor, strengths and decays of the delta rule, too. */
static unsigned kept_form(const struct sh_family *f, const struct sh_param *p)
{
    int by_delta_head = p->role == SH_RECUR_B_W || p->role == SH_RECUR_A_W;
    int by_head = (p->role == SH_Q_W || p->role == SH_ATTN_GATE_W) && is_one_tensor(f, SH_Q_W, SH_ATTN_GATE_W);
    return by_head || by_delta_head ? p->form & (SH_BY_HEAD | SH_BY_RECUR_HEAD) : 0u;
}

/* Hub folders have some matrices under one of two names, GGUF files under one. */
static int is_there(const struct sh_param *first, const struct sh_param *p)
{
    for (; first < p; first++)
        if (first->role == p->role && first->needs == p->needs && !strcmp(first->name, p->name))
            return 1;
    return 0;
}

static unsigned paired(const struct sh_family *f, enum sh_role role)
{
    int turns = role == SH_Q_W || role == SH_Q_B || role == SH_K_W || role == SH_K_B;
    return turns && f->gguf && f->gguf->traits & SH_GGUF_IN_PAIRS ? SH_GGUF_PAIRED : 0;
}

/* Do queries, keys and values have tensors of their own, and does nothing else have the name of one for all? */
static int are_apart(const struct sh_family *f)
{
    const struct sh_param *q = find(f, SH_Q_W), *k = find(f, SH_K_W);
    if (!f->gguf || !q || !k || !strcmp(name_of(f, q), name_of(f, k)) || is_one_tensor(f, SH_Q_W, SH_ATTN_GATE_W))
        return 0;
    for (const struct sh_gguf_name *own = f->gguf->names; own && own->name; own++)
        if (!strcmp(own->name, BLOCK "attn_qkv.weight"))
            return 0;
    return 1;
}

/* What some converters join, which is looked for first: gates and rows to gate of all experts; queries, keys and
 * values, and their biases. */
static struct sh_param *add_fused(const struct sh_family *f, struct sh_param *to)
{
    static const struct { enum sh_role role; const char *name; } fused[FUSED] = {
        {SH_EXPERT_GATE_W, BLOCK "ffn_gate_up_exps.weight"}, {SH_EXPERT_UP_W, BLOCK "ffn_gate_up_exps.weight"},
        {SH_Q_W, BLOCK "attn_qkv.weight"}, {SH_K_W, BLOCK "attn_qkv.weight"}, {SH_V_W, BLOCK "attn_qkv.weight"},
        {SH_Q_B, BLOCK "attn_qkv.bias"}, {SH_K_B, BLOCK "attn_qkv.bias"}, {SH_V_B, BLOCK "attn_qkv.bias"}};
    int experts = find(f, SH_EXPERT_GATE_W) && find(f, SH_EXPERT_UP_W), apart = are_apart(f);
    for (int i = 0; i < FUSED; i++) {
        const struct sh_param *p = find(f, fused[i].role);
        if (!p || !(i < 2 ? experts : apart))
            continue;
        *to = *p;
        to->name = fused[i].name;
        to->form = SH_WHOLE_NAME | paired(f, p->role);
        to++;
    }
    return to;
}

struct sh_family *sh_gguf_family(const struct sh_family *f, int joins)
{
    size_t n = 0;
    while (f->params[n].name)
        n++;
    struct sh_param *params = xcalloc(n + HALVES + FUSED + 1, sizeof *params);
    struct sh_param *to = joins ? add_fused(f, params) : params;
    int may_lack = f->gguf && f->gguf->traits & SH_GGUF_UNCORRECTED;
    for (size_t i = 0; i < n; i++) {
        enum sh_role role = f->params[i].role;
        *to = f->params[i];
        to->name = name_of(f, to);
        to->form = SH_WHOLE_NAME | paired(f, role) | kept_form(f, to) |
                   (role == SH_ROUTER_CHOICE && may_lack ? SH_OPTIONAL : 0u);
        to += to->name && !is_there(params, to);
    }
    if (f->gguf && f->gguf->traits & SH_GGUF_LATENT)
        memcpy(to, halves, sizeof halves);
    else
        to->name = NULL;
    struct sh_family *copy = xmalloc(sizeof *copy);
    *copy = *f;
    copy->params = params;
    copy->prefixes = no_prefix;
    return copy;
}

void sh_gguf_family_free(struct sh_family *f)
{
    if (f)
        free((void *)(uintptr_t)f->params);
    free(f);
}

size_t sh_gguf_row(const struct sh_layout *l, int d_head, int row)
{
    return sh_layout_row(l, sh_paired_row(d_head, row));
}

/* The elements of a packed or coded vector: of a row of the file, or of several. */
static void gather_vector(const struct sh_stored *t, const struct sh_layout *l, int d_head, float *to)
{
    size_t cols = t->shape[t->rank - 1], is_here = SIZE_MAX;
    float *one = xcalloc(cols, sizeof *one);
    for (int row = 0; row < l->rows; row++) {
        size_t at = sh_gguf_row(l, d_head, row);
        if (at / cols != is_here) {
            is_here = at / cols;
            sh_stored_rows(t, is_here, 1, one);
        }
        to[row] = one[at % cols];
    }
    free(one);
}

enum { PIECE = 16 };                    /* rows: coded ones that follow each other share words */

struct gathering {
    const struct sh_stored *t;
    const struct sh_layout *l;
    int d_head;
    size_t width;                       /* bytes of a row */
    char *to;
};

/* Rows [row, end) of the parameter to `at`; rows that follow each other in the tensor together. */
static void gather_some(const struct gathering *g, int row, int end, char *at)
{
    for (int n; row < end; row += n, at += (size_t)n * g->width) {
        size_t first = sh_gguf_row(g->l, g->d_head, row);
        for (n = 1; row + n < end && sh_gguf_row(g->l, g->d_head, row + n) == first + (size_t)n;)
            n++;
        if (sh_stored_is_coded(g->t))
            sh_stored_rows(g->t, first, (size_t)n, (float *)(void *)at);
        else
            memcpy(at, g->t->at + first * g->width, (size_t)n * g->width);
    }
}

static void gather_rows(void *arg, int piece)
{
    const struct gathering *g = arg;
    int row = piece * PIECE, end = g->l->rows - row < PIECE ? g->l->rows : row + PIECE;
    gather_some(g, row, end, g->to + (size_t)row * g->width);
}

void sh_gguf_rows(const struct sh_stored *t, const struct sh_layout *l, int d_head, int first, int n, float *to)
{
    gather_some(&(struct gathering){t, l, d_head, (size_t)l->cols * sizeof *to, NULL}, first, first + n, (char *)to);
}

void sh_gguf_gather(const struct sh_stored *t, const struct sh_layout *l, int d_head, size_t element, void *to)
{
    if (sh_stored_is_coded(t) && l->cols == 1) {
        gather_vector(t, l, d_head, to);
        return;
    }
    struct gathering g = {t, l, d_head, (size_t)l->cols * element, to};
    sh_team_each(0, (l->rows + PIECE - 1) / PIECE, gather_rows, &g);
}
